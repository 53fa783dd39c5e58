/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes: one number, lists, texts, tensors, and references. */
#include "model/onnx/reader.h"

#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NAME = 1, F, I, S, T, FLOATS = 7, INTS, STRINGS, TYPE = 20, REFERENCE };
enum { FLOAT = 1, INT, STRING, TENSOR, GRAPH, FLOAT_LIST, INT_LIST, STRING_LIST, TENSOR_LIST };

struct reading {
    struct wpk_graph graph;
    struct wpk_diag diag;
    struct wpk_onnx_reader reader;
};

static struct wpk_buf begin(int type)
{
    struct wpk_buf out = {0};
    wpk_model_put_text(&out, NAME, "a");
    wpk_model_put_number(&out, TYPE, type);
    return out;
}

static void put_fixed32(struct wpk_buf *out, int field, float number)
{
    wpk_buf_append_byte(out, (char)(field << 3 | WPK_PROTOBUF_FIXED32));
    wpk_buf_append(out, &number, sizeof(number));
}

static wpk_err read_in(struct reading *r, const struct wpk_buf *bytes, struct wpk_onnx_scope *scope,
                       struct wpk_graph_attribute *out)
{
    *r = (struct reading){.diag = {.text = ""}};
    wpk_arena_init(&r->graph.arena, WPK_GRAPH_MEMORY_MAX);
    r->graph.maps[0] = (struct wpk_graph_map){bytes->data, bytes->size}; /* of messages */
    r->reader = (struct wpk_onnx_reader){
        .graph = &r->graph, .path = "m.onnx", .diag = &r->diag, .scope = scope};
    const struct wpk_protobuf message = {.at = (const uint8_t *)bytes->data,
                                         .end = (const uint8_t *)bytes->data + bytes->size};
    return wpk_onnx_attribute(&r->reader, message, out);
}

static void end(struct reading *r, struct wpk_buf *bytes)
{
    wpk_graph_fini(&r->graph);
    wpk_buf_fini(bytes);
}

static void one_number_is_an_integer_or_a_float(void **state)
{
    (void)state;
    struct reading r;
    struct wpk_graph_attribute out;
    struct wpk_buf bytes = begin(INT);
    wpk_model_put_number(&bytes, I, -9);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_string_equal(out.name, "a");
    assert_int_equal(out.kind, WPK_ATTRIBUTE_INT);
    assert_int_equal(out.integer, -9);
    assert_int_equal(out.tensor, -1);
    end(&r, &bytes);
    bytes = begin(FLOAT);
    put_fixed32(&bytes, F, 0.25F);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.kind, WPK_ATTRIBUTE_FLOAT);
    assert_true(out.real == 0.25F);
    end(&r, &bytes);
    bytes = begin(INT); /* no value: that of proto3 */
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.integer, 0);
    end(&r, &bytes);
}

static void lists_are_packed_or_one_a_field(void **state)
{
    (void)state;
    struct reading r;
    struct wpk_graph_attribute out;
    const float reals[] = {1, 2.5F};
    struct wpk_buf bytes = begin(INT_LIST);
    wpk_model_put_bytes(&bytes, INTS, "\x05\xac\x02", 3); /* 5, 300 */
    wpk_model_put_number(&bytes, INTS, -1);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.kind, WPK_ATTRIBUTE_INTS);
    assert_int_equal(out.count, 3);
    assert_true(out.integers[0] == 5 && out.integers[1] == 300 && out.integers[2] == -1);
    end(&r, &bytes);
    bytes = begin(FLOAT_LIST);
    put_fixed32(&bytes, FLOATS, -4);
    wpk_model_put_bytes(&bytes, FLOATS, reals, sizeof(reals));
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.kind, WPK_ATTRIBUTE_FLOATS);
    assert_int_equal(out.count, 3);
    assert_true(out.reals[0] == -4 && out.reals[1] == 1 && out.reals[2] == 2.5F);
    end(&r, &bytes);
    bytes = begin(INT_LIST);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.count, 0);
    end(&r, &bytes);
}

/* A list that is cut in a number has the numbers before it, and nothing is read behind it. */
static void a_packed_list_may_end_inside_of_a_number(void **state)
{
    (void)state;
    struct reading r;
    struct wpk_graph_attribute out;
    struct wpk_buf bytes = begin(INT_LIST);
    wpk_model_put_bytes(&bytes, INTS, "\x07\x80", 2);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.count, 1);
    assert_int_equal(out.integers[0], 7);
    end(&r, &bytes);
    bytes = begin(FLOAT_LIST);
    wpk_model_put_bytes(&bytes, FLOATS, "\0\0\x80\x3f\0\0", 6);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.count, 1);
    assert_true(out.reals[0] == 1);
    end(&r, &bytes);
}

static void texts_are_joined_by_commas(void **state)
{
    (void)state;
    static const struct {
        int type, count;
        const char *texts[3];
        const char *joined;
    } cases[] = {
        {STRING, 1, {"SAME_UPPER"}, "SAME_UPPER"},
        {STRING_LIST, 3, {"a", "b", "c"}, "a,b,c"},
        {STRING_LIST, 1, {"only"}, "only"},
        {STRING_LIST, 0, {NULL}, ""},
        {STRING, 1, {""}, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reading r;
        struct wpk_graph_attribute out;
        struct wpk_buf bytes = begin(cases[i].type);
        for (int k = 0; k < cases[i].count; k++) {
            wpk_model_put_text(&bytes, cases[i].type == STRING ? S : STRINGS, cases[i].texts[k]);
        }
        assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
        assert_int_equal(out.kind, WPK_ATTRIBUTE_TEXT);
        assert_string_equal(out.text, cases[i].joined);
        end(&r, &bytes);
    }
}

static void a_tensor_becomes_a_value_without_a_name(void **state)
{
    (void)state;
    struct reading r;
    struct wpk_graph_attribute out;
    struct wpk_buf tensor = {0}, bytes = begin(TENSOR);
    wpk_model_put_number(&tensor, 1, 1);
    wpk_model_put_number(&tensor, 2, 7); /* INT64 */
    wpk_model_put_number(&tensor, 7, 42);
    wpk_model_put_message(&bytes, T, &tensor);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
    assert_int_equal(out.kind, WPK_ATTRIBUTE_TENSOR);
    assert_int_equal(wpk_graph_integer(&r.graph.values[out.tensor], 0), 42);
    assert_string_equal(r.graph.values[out.tensor].name, "");
    end(&r, &bytes);
    bytes = begin(TENSOR);
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_EPARSE);
    assert_non_null(strstr(r.diag.text, "attribute a has no tensor"));
    end(&r, &bytes);
}

static void other_types_are_kept_without_a_value(void **state)
{
    (void)state;
    static const int types[] = {0, GRAPH, TENSOR_LIST, 11, 1000};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct reading r;
        struct wpk_graph_attribute out;
        struct wpk_buf bytes = begin(types[i]);
        wpk_model_put_number(&bytes, I, 5);
        assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_OK);
        assert_int_equal(out.kind, WPK_ATTRIBUTE_OTHER);
        end(&r, &bytes);
    }
}

/* ref_attr_name: the caller's value under the node's own name, else the function's default. */
static void a_reference_takes_the_callers_value(void **state)
{
    (void)state;
    const struct wpk_graph_attribute given = {
        .name = "axis", .kind = WPK_ATTRIBUTE_INT, .integer = 4};
    const struct wpk_graph_node caller = {.attributes = &given, .attribute_count = 1};
    const struct wpk_onnx_function function = {.name = "f"};
    struct wpk_onnx_scope scope = {.function = &function, .caller = &caller};
    struct reading r;
    struct wpk_graph_attribute out;
    struct wpk_buf bytes = begin(INT);
    wpk_model_put_text(&bytes, REFERENCE, "axis");
    assert_int_equal(read_in(&r, &bytes, &scope, &out), WPK_OK);
    assert_string_equal(out.name, "a");
    assert_int_equal(out.integer, 4);
    end(&r, &bytes);
    bytes = begin(INT); /* neither given nor a default: as if it were not there */
    wpk_model_put_text(&bytes, REFERENCE, "other");
    assert_int_equal(read_in(&r, &bytes, &scope, &out), WPK_OK);
    assert_string_equal(out.name, "");
    end(&r, &bytes);
    bytes = begin(INT);
    wpk_model_put_text(&bytes, REFERENCE, "axis");
    assert_int_equal(read_in(&r, &bytes, NULL, &out), WPK_EPARSE);
    assert_non_null(strstr(r.diag.text, "outside of a function"));
    end(&r, &bytes);
}

static void attributes_that_are_cut_short_are_refused(void **state)
{
    (void)state;
    struct wpk_buf bytes = begin(STRING);
    wpk_model_put_text(&bytes, S, "VALID");
    size_t whole = bytes.size;
    for (size_t size = 1; size < whole; size++) {
        struct reading r;
        struct wpk_graph_attribute out;
        bool between = size == 3 || size == 6; /* fields end there */
        bytes.size = size;
        wpk_err err = read_in(&r, &bytes, NULL, &out);
        if (err != (between ? WPK_OK : WPK_EPARSE)) {
            fail_msg("%zu bytes: %s", size, r.diag.text);
        }
        wpk_graph_fini(&r.graph);
    }
    wpk_buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_number_is_an_integer_or_a_float),
        cmocka_unit_test(lists_are_packed_or_one_a_field),
        cmocka_unit_test(a_packed_list_may_end_inside_of_a_number),
        cmocka_unit_test(texts_are_joined_by_commas),
        cmocka_unit_test(a_tensor_becomes_a_value_without_a_name),
        cmocka_unit_test(other_types_are_kept_without_a_value),
        cmocka_unit_test(a_reference_takes_the_callers_value),
        cmocka_unit_test(attributes_that_are_cut_short_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
