/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that are built by hand: names, attributes, constants, counts. */
#include "model/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int add(struct wpk_graph *graph, const char *name)
{
    int value = -1;
    assert_int_equal(wpk_graph_add_value(graph, name, &value), WPK_OK);
    return value;
}

static void names_are_found_among_many(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct wpk_graph graph = {.node_count = 0};
    char name[16];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "v%d", i);
        char *copy = wpk_arena_copy_text(&graph.arena, name);
        assert_int_equal(add(&graph, copy), i);
        assert_int_equal(graph.values[i].writer, -1);
    }
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "v%d", i);
        assert_int_equal(wpk_graph_find(&graph, name), i);
    }
    assert_int_equal(wpk_graph_find(&graph, "v3000"), -1);
    assert_int_equal(wpk_graph_find(&graph, "v"), -1);
    wpk_graph_fini(&graph);
}

static void values_without_a_name_are_not_found(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    assert_int_equal(wpk_graph_find(&graph, "a"), -1); /* of an empty graph */
    assert_int_equal(add(&graph, ""), 0);
    assert_int_equal(add(&graph, "a"), 1);
    assert_int_equal(add(&graph, ""), 2);
    assert_int_equal(wpk_graph_find(&graph, ""), -1);
    assert_int_equal(wpk_graph_find(&graph, "a"), 1);
    wpk_graph_fini(&graph);
    wpk_graph_fini(&graph); /* an empty one */
    wpk_graph_fini(NULL);
}

static void a_full_graph_does_not_grow(void **state)
{
    (void)state;
    struct wpk_graph graph = {.arena.size_max = 20000};
    struct wpk_graph_node node = {.name = ""};
    int value = -1;
    assert_int_equal(add(&graph, "a"), 0);
    const char *text = wpk_graph_format(&graph, "%030000d", 7); /* more than there is room for */
    assert_int_equal(strlen(text), 30000);
    assert_int_equal(wpk_graph_add_value(&graph, "b", &value), WPK_ENOMEM);
    assert_int_equal(wpk_graph_add_node(&graph, &node), WPK_ENOMEM);
    assert_int_equal(wpk_graph_add_note(&graph, "", "n"), WPK_ENOMEM);
    assert_int_equal(graph.value_count, 1);
    wpk_graph_fini(&graph);
}

/* Names whose hashes begin a probe at one slot: each is found behind the others. */
static void names_that_collide_are_told_apart(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    static char names[128][8];
    for (int i = 0; i < 128; i++) { /* half of the first table */
        snprintf(names[i], sizeof(names[i]), "%c%c", 'a' + i % 16, 'a' + i / 16);
        add(&graph, names[i]);
        for (int k = 0; k <= i; k++) {
            assert_int_equal(wpk_graph_find(&graph, names[k]), k);
        }
    }
    wpk_graph_fini(&graph);
}

static void a_graph_has_at_most_65536_nodes(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    const struct wpk_graph_node node = {.name = "n", .op = "Relu", .domain = ""};
    int count = -1;
    for (int i = 0; i < WPK_GRAPH_NODES_MAX; i++) {
        assert_int_equal(wpk_graph_add_node(&graph, &node), WPK_OK);
    }
    assert_int_equal(wpk_graph_add_node(&graph, &node), WPK_ENOSPC);
    struct wpk_graph_node *taken = wpk_graph_take_nodes(&graph, &count);
    assert_int_equal(count, WPK_GRAPH_NODES_MAX);
    assert_int_equal(graph.node_count, 0);
    assert_int_equal(wpk_graph_add_node(&graph, &taken[7]), WPK_OK); /* one by one again */
    assert_string_equal(graph.nodes[0].op, "Relu");
    free(taken);
    wpk_graph_fini(&graph);
    taken = wpk_graph_take_nodes(&graph, &count);
    assert_null(taken);
    assert_int_equal(count, 0);
}

static void notes_are_kept_in_their_order(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    static char names[100][8];
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        assert_int_equal(wpk_graph_add_note(&graph, names[i], "folded"), WPK_OK);
    }
    assert_int_equal(graph.note_count, 100);
    assert_string_equal(graph.notes[99].node, "n99");
    assert_string_equal(graph.notes[0].why, "folded");
    wpk_graph_fini(&graph);
}

static void attributes_are_found_by_name_and_kind(void **state)
{
    (void)state;
    const struct wpk_graph_attribute attributes[] = {
        {.name = "axis", .kind = WPK_ATTRIBUTE_FLOAT, .real = 2},
        {.name = "axis", .kind = WPK_ATTRIBUTE_INT, .integer = -3},
        {.name = "mode", .kind = WPK_ATTRIBUTE_TEXT, .text = "edge"},
    };
    const struct wpk_graph_node node = {.attributes = attributes, .attribute_count = 3};
    assert_ptr_equal(wpk_graph_attribute(&node, "axis", WPK_ATTRIBUTE_INT), &attributes[1]);
    assert_null(wpk_graph_attribute(&node, "axis", WPK_ATTRIBUTE_INTS));
    assert_null(wpk_graph_attribute(&node, "axi", WPK_ATTRIBUTE_INT));
    assert_int_equal(wpk_graph_int(&node, "axis", 7), -3);
    assert_int_equal(wpk_graph_int(&node, "mode", 7), 7); /* it is a text */
    assert_string_equal(wpk_graph_text(&node, "mode", "none"), "edge");
    assert_string_equal(wpk_graph_text(&node, "axis", "none"), "none");
}

static void the_same_attributes_may_have_another_order(void **state)
{
    (void)state;
    static const int64_t ints[] = {1, 2, 3}, others[] = {1, 2, 4};
    static const float reals[] = {1, 0}, zeros[] = {1, -0.0F};
    const struct wpk_graph_attribute list[] = {
        {.name = "a", .kind = WPK_ATTRIBUTE_INT, .integer = 1},
        {.name = "b", .kind = WPK_ATTRIBUTE_INTS, .integers = ints, .count = 3},
        {.name = "c", .kind = WPK_ATTRIBUTE_TEXT, .text = "x"},
        {.name = "d", .kind = WPK_ATTRIBUTE_FLOATS, .reals = reals, .count = 2},
        {.name = "e", .kind = WPK_ATTRIBUTE_FLOAT, .real = 0.5F},
    };
    enum { COUNT = sizeof(list) / sizeof(list[0]) };
    struct wpk_graph_attribute changed[COUNT];
    struct wpk_graph_node one = {.attributes = list, .attribute_count = COUNT};
    struct wpk_graph_node other = {.attributes = changed, .attribute_count = COUNT};
    for (int i = 0; i < COUNT; i++) {
        changed[COUNT - 1 - i] = list[i];
    }
    assert_true(wpk_graph_same_attributes(&one, &other));
    for (int i = 0; i < 8; i++) {
        memcpy(changed, list, sizeof(list));
        other.attribute_count = COUNT;
        switch (i) {
        case 0:
            changed[0].integer = 2;
            break;
        case 1:
            changed[1].integers = others;
            break;
        case 2:
            changed[1].count = 2;
            break;
        case 3:
            changed[2].text = "y";
            break;
        case 4:
            changed[3].reals = zeros;
            break; /* -0 is another number */
        case 5:
            changed[4].real = 0.25F;
            break;
        case 6:
            changed[0].name = "z";
            break;
        default:
            other.attribute_count = COUNT - 1;
            break;
        }
        if (wpk_graph_same_attributes(&one, &other)) {
            fail_msg("change %d", i);
        }
    }
}

static void attributes_of_unknown_kinds_are_never_the_same(void **state)
{
    (void)state;
    const struct wpk_graph_attribute other = {.name = "body", .kind = WPK_ATTRIBUTE_OTHER};
    const struct wpk_graph_node node = {.attributes = &other, .attribute_count = 1};
    const struct wpk_graph_node none = {.attribute_count = 0};
    assert_false(wpk_graph_same_attributes(&node, &node));
    assert_true(wpk_graph_same_attributes(&none, &none));
}

static void an_input_may_be_left_out(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    static const int inputs[] = {0, -1, 1};
    const struct wpk_graph_node node = {.inputs = inputs, .input_count = 3};
    add(&graph, "x");
    add(&graph, "y");
    assert_ptr_equal(wpk_graph_input(&graph, &node, 0), &graph.values[0]);
    assert_null(wpk_graph_input(&graph, &node, 1));
    assert_ptr_equal(wpk_graph_input(&graph, &node, 2), &graph.values[1]);
    assert_null(wpk_graph_input(&graph, &node, 3)); /* behind the last one */
    wpk_graph_fini(&graph);
}

static void shapes_are_the_same_by_rank_and_extents(void **state)
{
    (void)state;
    struct wpk_graph_value a = {.rank = 2, .extent = {2, 3, 9}}, b = {.rank = 2, .extent = {2, 3}};
    assert_true(wpk_graph_same_shape(&a, &b)); /* what lies behind does not count */
    b.extent[1] = 4;
    assert_false(wpk_graph_same_shape(&a, &b));
    b = (struct wpk_graph_value){.rank = 3, .extent = {2, 3, 9}};
    assert_false(wpk_graph_same_shape(&a, &b));
    a.rank = b.rank = 0;
    assert_true(wpk_graph_same_shape(&a, &b));
    assert_int_equal(wpk_graph_elements(&a), 1); /* a scalar */
    a = (struct wpk_graph_value){.rank = 3, .extent = {2, 0, 5}};
    assert_int_equal(wpk_graph_elements(&a), 0);
}

/* x is read twice by one node and is an output; y is read once. */
static void uses_are_reads_and_outputs(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    static const int twice[] = {0, 0, -1}, once[] = {1};
    int output = 2;
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"x", "y", "z", "unread"};
        add(&graph, names[i]);
    }
    const struct wpk_graph_node a = {
        .inputs = twice, .input_count = 3, .outputs = &output, .output_count = 1};
    const struct wpk_graph_node b = {
        .inputs = once, .input_count = 1, .outputs = &output, .output_count = 1};
    assert_int_equal(wpk_graph_add_node(&graph, &a), WPK_OK);
    assert_int_equal(wpk_graph_add_node(&graph, &b), WPK_OK);
    graph.outputs = malloc(2 * sizeof(int));
    assert_non_null(graph.outputs);
    graph.outputs[0] = 0;
    graph.outputs[1] = 2;
    graph.output_count = 2;
    int *uses = wpk_graph_count_uses(&graph);
    static const int expected[] = {3, 1, 1, 0};
    assert_memory_equal(uses, expected, sizeof(expected));
    free(uses);
    wpk_graph_fini(&graph);
}

/* A constant counts once, however often it is read; not if only a folded node reads it. */
static void constants_that_nodes_read_are_counted_once(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    static const char data[64];
    for (int i = 0; i < 5; i++) {
        static const char *const names[] = {"x", "w", "v", "y", "folded"};
        add(&graph, names[i]);
    }
    graph.values[1].data = data;
    graph.values[1].size = 40;
    graph.values[2].data = data;
    graph.values[2].size = 24;
    graph.values[4].data = data;
    graph.values[4].size = 7;
    static const int reads[] = {0, 1, -1, 1}, folds[] = {2};
    int y = 3, folded = 4;
    const struct wpk_graph_node a = {.inputs = reads, .input_count = 4, .outputs = &y};
    const struct wpk_graph_node b = {.inputs = folds, .input_count = 1, .outputs = &folded};
    assert_int_equal(wpk_graph_add_node(&graph, &a), WPK_OK);
    assert_int_equal(wpk_graph_add_node(&graph, &a), WPK_OK);
    assert_int_equal(wpk_graph_add_node(&graph, &b), WPK_OK);
    assert_int_equal(wpk_graph_constant_bytes(&graph), 40);
    wpk_graph_fini(&graph);
}

static void elements_are_read_from_any_alignment(void **state)
{
    (void)state;
    static const struct {
        enum wpk_dtype dtype;
        unsigned char bytes[8];
        double number;
    } cases[] = {
        {WPK_F32, {0, 0, 0xc0, 0x3f}, 1.5},
        {WPK_F64, {0, 0, 0, 0, 0, 0, 0xf8, 0xbf}, -1.5},
        {WPK_I32, {0xfe, 0xff, 0xff, 0xff}, -2},
        {WPK_I64, {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -3},
        {WPK_U8, {0xff}, 255},
        {WPK_I8, {0xff}, -1},
        {WPK_I16, {0x00, 0x80}, -32768},
        {WPK_BOOL, {1}, 1},
        {WPK_F16, {0x00, 0x3e}, 1.5},
        {WPK_BF16, {0xc0, 0xbf}, -1.5},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = wpk_dtype_size(cases[i].dtype);
        unsigned char bytes[17] = {0};
        memcpy(bytes + 1 + size, cases[i].bytes, size);
        const struct wpk_graph_value value = {
            .dtype = cases[i].dtype, .rank = 1, .extent = {2}, .data = bytes + 1, .size = 2 * size};
        assert_true(wpk_graph_element(&value, 0) == 0);
        if (wpk_graph_element(&value, 1) != cases[i].number) {
            fail_msg("%s: %g", wpk_dtype_name(cases[i].dtype), wpk_graph_element(&value, 1));
        }
        if (!wpk_dtype_is_float(cases[i].dtype)) {
            assert_int_equal(wpk_graph_integer(&value, 1), (int64_t)cases[i].number);
        }
    }
}

static void large_integers_are_exact(void **state)
{
    (void)state;
    const int64_t numbers[] = {INT64_MAX, INT64_MIN, ((int64_t)1 << 53) + 1};
    const struct wpk_graph_value value = {
        .dtype = WPK_I64, .rank = 1, .extent = {3}, .data = numbers, .size = sizeof(numbers)};
    for (int i = 0; i < 3; i++) {
        assert_true(wpk_graph_integer(&value, i) == numbers[i]);
    }
}

static void integers_are_lists_of_limited_length(void **state)
{
    (void)state;
    const int32_t numbers[] = {4, -5, 6};
    const float reals[] = {1, 2, 3};
    int64_t out[3] = {0};
    int count = -1;
    struct wpk_graph_value value = {
        .dtype = WPK_I32, .rank = 1, .extent = {3}, .data = numbers, .size = sizeof(numbers)};
    assert_int_equal(wpk_graph_integers(&value, out, 3, &count), WPK_OK);
    assert_int_equal(count, 3);
    assert_true(out[0] == 4 && out[1] == -5 && out[2] == 6);
    assert_int_equal(wpk_graph_integers(&value, out, 2, &count), WPK_ERANGE);
    assert_int_equal(count, 3); /* only written on success */
    assert_int_equal(wpk_graph_integers(NULL, out, 3, &count), WPK_ENOENT);
    value.extent[0] = 0;
    assert_int_equal(wpk_graph_integers(&value, out, 0, &count), WPK_OK);
    assert_int_equal(count, 0);
    value = (struct wpk_graph_value){
        .dtype = WPK_F32, .rank = 1, .extent = {3}, .data = reals, .size = sizeof(reals)};
    assert_int_equal(wpk_graph_integers(&value, out, 3, &count), WPK_ENOENT);
    value.data = NULL;
    value.dtype = WPK_I64;
    assert_int_equal(wpk_graph_integers(&value, out, 3, &count), WPK_ENOENT); /* no constant */
}

static void element_types_have_the_names_of_onnx(void **state)
{
    (void)state;
    static const struct {
        int type;
        const char *name, *advice;
    } cases[] = {
        {0, "undefined", ""},   {1, "float", "float32"},     {4, "uint16", "of integers"},
        {8, "string", ""},      {10, "float16", "float32"},  {13, "uint64", "of integers"},
        {15, "complex128", ""}, {16, "bfloat16", "float32"}, {17, "unknown", ""},
        {-1, "unknown", ""},    {77, "unknown", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *advice = wpk_graph_element_type_advice(cases[i].type);
        assert_string_equal(wpk_graph_element_type_name(cases[i].type), cases[i].name);
        assert_non_null(strstr(advice, cases[i].advice));
        assert_int_equal(advice[0] == '\0', cases[i].advice[0] == '\0');
    }
}

static void types_that_are_computed_with_have_a_number(void **state)
{
    (void)state;
    static const int numbers[] = {1, 2, 3, 5, 6, 7, 9, 10, 11, 16};
    int known = 0;
    for (int type = -1; type < 40; type++) {
        enum wpk_dtype dtype = WPK_F32;
        bool is = wpk_graph_dtype(type, &dtype) == WPK_OK;
        if (is) {
            assert_int_equal(type, numbers[known++]);
            assert_int_equal(wpk_graph_element_of(dtype), type);
        }
    }
    assert_int_equal(known, sizeof(numbers) / sizeof(numbers[0]));
}

static void an_if_of_another_domain_is_no_branch(void **state)
{
    (void)state;
    struct wpk_graph_node node = {.op = "If", .domain = ""};
    assert_true(wpk_graph_is_branching(&node));
    node.domain = "com.example";
    assert_false(wpk_graph_is_branching(&node));
    node = (struct wpk_graph_node){.op = "Iff", .domain = ""};
    assert_false(wpk_graph_is_branching(&node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_among_many),
        cmocka_unit_test(values_without_a_name_are_not_found),
        cmocka_unit_test(a_full_graph_does_not_grow),
        cmocka_unit_test(names_that_collide_are_told_apart),
        cmocka_unit_test(a_graph_has_at_most_65536_nodes),
        cmocka_unit_test(notes_are_kept_in_their_order),
        cmocka_unit_test(attributes_are_found_by_name_and_kind),
        cmocka_unit_test(the_same_attributes_may_have_another_order),
        cmocka_unit_test(attributes_of_unknown_kinds_are_never_the_same),
        cmocka_unit_test(an_input_may_be_left_out),
        cmocka_unit_test(shapes_are_the_same_by_rank_and_extents),
        cmocka_unit_test(uses_are_reads_and_outputs),
        cmocka_unit_test(constants_that_nodes_read_are_counted_once),
        cmocka_unit_test(elements_are_read_from_any_alignment),
        cmocka_unit_test(large_integers_are_exact),
        cmocka_unit_test(integers_are_lists_of_limited_length),
        cmocka_unit_test(element_types_have_the_names_of_onnx),
        cmocka_unit_test(types_that_are_computed_with_have_a_number),
        cmocka_unit_test(an_if_of_another_domain_is_no_branch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
