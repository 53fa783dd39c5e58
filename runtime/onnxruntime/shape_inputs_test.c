/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A graph whose values are known by their names; a node's id is its index. */
#define NODE_INPUTS 5

struct ort_value_info {
    const char *name;
};

struct ort_node {
    const char *op_type;
    struct ort_value_info output, inputs[NODE_INPUTS]; /* those without a name are left out */
};

struct ort_graph {
    const struct ort_node *nodes;
    size_t count;
};

static const struct ort_graph *the_graph;

static struct ort_status *get_count(const struct ort_graph *graph, size_t *out)
{
    *out = graph->count;
    return NULL;
}

static struct ort_status *get_nodes(const struct ort_graph *graph, const struct ort_node **out,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = &graph->nodes[i];
    }
    return NULL;
}

static struct ort_status *get_id(const struct ort_node *node, size_t *out)
{
    *out = (size_t)(node - the_graph->nodes);
    return NULL;
}

static struct ort_status *get_op_type(const struct ort_node *node, const char **out)
{
    *out = node->op_type;
    return NULL;
}

static struct ort_status *get_input_count(const struct ort_node *node, size_t *out)
{
    *out = NODE_INPUTS;
    return NULL;
}

static struct ort_status *get_inputs(const struct ort_node *node, const struct ort_value_info **out,
                                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = node->inputs[i].name != NULL ? &node->inputs[i] : NULL;
    }
    return NULL;
}

static struct ort_status *get_name(const struct ort_value_info *value, const char **out)
{
    *out = value->name;
    return NULL;
}

static struct ort_status *get_producer(const struct ort_value_info *value,
                                       const struct ort_node **out, size_t *output)
{
    *output = 0;
    for (size_t i = 0; i < the_graph->count; i++) {
        if (strcmp(the_graph->nodes[i].output.name, value->name) == 0) {
            *out = &the_graph->nodes[i];
        }
    }
    return NULL;
}

/* Which of a, b, c, d, e decide on shapes, as "ab". */
static const char *find(const struct ort_node *nodes, size_t count)
{
    static const struct wpk_ort ort = {.Graph_GetNumNodes = get_count,
                                       .Graph_GetNodes = get_nodes,
                                       .Node_GetId = get_id,
                                       .Node_GetOperatorType = get_op_type,
                                       .Node_GetNumInputs = get_input_count,
                                       .Node_GetInputs = get_inputs,
                                       .GetValueInfoName = get_name,
                                       .ValueInfo_GetValueProducer = get_producer};
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    static char found[6];
    const struct ort_graph graph = {nodes, count};
    bool decides[5] = {false};
    size_t size = 0;
    the_graph = &graph;
    assert_null(wpk_shape_inputs_find(&ort, &graph, names, 5, decides));
    for (size_t i = 0; i < 5; i++) {
        found[size] = names[i][0];
        size += decides[i];
    }
    found[size] = '\0';
    return found;
}

static void test_operators_name_their_inputs(void **state)
{
    (void)state;
    const struct ort_node nodes[] = {
        {"Slice", {"y"}, {{"a"}, {"b"}, {"c"}, {NULL}, {"e"}}},
        {"Gather", {"z"}, {{"y"}, {"d"}}},
    };
    assert_string_equal(find(nodes, 2), "bce");
    assert_string_equal(find(nodes + 1, 1), "");
    assert_string_equal(find(&(struct ort_node){"ReduceSum", {"y"}, {{"a"}, {"b"}}}, 1), "b");
    assert_string_equal(find(&(struct ort_node){"Range", {"y"}, {{"a"}, {"b"}, {"c"}}}, 1), "abc");
}

static void test_shapes_are_followed_to_the_inputs(void **state)
{
    (void)state;
    const struct ort_node nodes[] = {
        {"Shape", {"s"}, {{"a"}}},          {"Size", {"t"}, {{"e"}}},
        {"Mul", {"m"}, {{"b"}, {"t"}}},     {"Concat", {"k"}, {{"s"}, {"m"}, {NULL}, {"c"}}},
        {"Reshape", {"r"}, {{"d"}, {"k"}}}, {"Add", {"y"}, {{"r"}, {"d"}}},
    };
    assert_string_equal(find(nodes, 6), "bc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators_name_their_inputs),
        cmocka_unit_test(test_shapes_are_followed_to_the_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
