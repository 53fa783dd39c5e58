/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that the user gives for a model's inputs, and for outputs whose shape depends on data. */
#include "model/operator/shape.h"

#include "common/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wpk_err read_extents(const char *text, int64_t *extent, int *rank)
{
    char *end;

    *rank = 0;
    if (text[0] == '\0') {
        return WPK_OK; /* of a scalar */
    }
    for (; *rank < WPK_RANK_MAX; text = end + 1) {
        errno = 0;
        extent[(*rank)++] = strtoll(text, &end, 10);
        if (end == text || errno != 0 || extent[*rank - 1] < 1 ||
            extent[*rank - 1] > WPK_ELEMENTS_MAX || (*end != ',' && *end != '\0')) {
            return WPK_EINVAL;
        }
        if (*end == '\0') {
            return WPK_OK;
        }
    }
    return WPK_EINVAL;
}

/* True if data decides on the shape of the node's output. */
static bool is_open(const struct wpk_graph_node *node)
{
    static const char *const ops[] = {"Compress", "NonZero"};
    bool found = false;

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        found = found || strcmp(node->op, ops[i]) == 0;
    }
    return found && node->outputs[0] >= 0;
}

/* The output of a node whose shape data decides. */
static bool fix_output(struct wpk_graph *graph, const char *name, const int64_t *extent, int rank)
{
    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_graph_node *node = &graph->nodes[n];
        if (is_open(node) && strcmp(graph->values[node->outputs[0]].name, name) == 0) {
            struct wpk_graph_value *out = &graph->values[node->outputs[0]];
            out->is_fixed = true;
            out->rank = rank;
            memcpy(out->extent, extent, (size_t)rank * sizeof(*extent));
            return true;
        }
    }
    return false;
}

wpk_err wpk_graph_set_shape(struct wpk_graph *graph, const char *text, struct wpk_diag *diag)
{
    const char *equals = strrchr(text, '=');
    int value = -1;
    int64_t extent[WPK_RANK_MAX];
    int rank = 0;

    if (equals == NULL || read_extents(equals + 1, extent, &rank) != WPK_OK) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--shape takes INPUT=EXTENT,..., such as x=1,3,224,224, not '%s'", text);
    }
    size_t size = (size_t)(equals - text);
    char name[WPK_SUGGEST_SIZE];
    snprintf(name, sizeof(name), "%.*s", (int)size, text);
    struct wpk_suggest suggest = {.word = name};
    for (int i = 0; i < graph->input_count; i++) {
        const char *input = graph->values[graph->inputs[i]].name;
        if (strlen(input) == size && strncmp(input, text, size) == 0) {
            value = graph->inputs[i];
        }
        wpk_suggest_offer(&suggest, input);
    }
    if (value < 0 && fix_output(graph, name, extent, rank)) {
        return WPK_OK;
    }
    if (value < 0) {
        return wpk_fail(diag, WPK_EINVAL, "--shape: the model has no input '%s'%s", name,
                        wpk_suggest_text(&suggest));
    }
    return wpk_graph_set_extents(graph, value, extent, rank, "--shape", diag);
}

wpk_err wpk_graph_set_extents(struct wpk_graph *graph, int input, const int64_t *extent, int rank,
                              const char *option, struct wpk_diag *diag)
{
    struct wpk_graph_value *value = &graph->values[input];

    if (value->is_shaped && value->rank != rank) {
        return wpk_fail(diag, WPK_EINVAL, "%s: input %s has %d extents, not %d", option,
                        value->name, value->rank, rank);
    }
    for (int d = 0; d < rank; d++) {
        bool is_fixed = value->is_shaped && value->free_dim[d] == NULL;
        if (is_fixed && value->extent[d] != extent[d]) {
            return wpk_fail(diag, WPK_EINVAL, "%s: the model fixes extent %d of input %s at %lld",
                            option, d, value->name, (long long)value->extent[d]);
        }
        value->extent[d] = extent[d];
        value->free_dim[d] = NULL;
    }
    value->rank = rank;
    value->is_shaped = true;
    return WPK_OK;
}

wpk_err wpk_graph_bind(struct wpk_graph *graph, int input, const void *data, size_t size)
{
    struct wpk_graph_value *value = &graph->values[input];
    int count = 0;

    WPK_ASSERT(value->is_shaped && value->is_typed);
    WPK_ASSERT(size == (size_t)wpk_graph_elements(value) * wpk_dtype_size(value->dtype));
    void *copy = wpk_arena_demand(&graph->arena, size, 1);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    value->data = copy;
    value->size = size;
    value->is_input = false;
    for (int i = 0; i < graph->input_count; i++) {
        graph->inputs[count] = graph->inputs[i];
        count += graph->inputs[i] != input;
    }
    graph->input_count = count;
    return WPK_OK;
}
