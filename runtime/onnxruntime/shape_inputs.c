/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/plans.h"

#include <stdio.h>
#include <string.h>

/* Whether an operator's output shape is computed from this input. Axes count, because Woodpecker
 * compiles a node with constant axes alone. */
static bool is_shape_input(const char *op_type, size_t input)
{
    static const char inputs[] =
        " CenterCropPad:1 Col2Im:12 ConstantOfShape:0 CumSum:1 Expand:1 MaxUnpool:2 OneHot:1 Pad:13"
        " Range:012 Reshape:1 Resize:123 Slice:1234 Split:1 Squeeze:1 Tile:1 TopK:1 Trilu:1"
        " Unsqueeze:1 Upsample:1 ";
    char word[64];
    snprintf(word, sizeof(word), " %s:", op_type);
    const char *found = strstr(inputs, word);
    if (found == NULL) {
        return input == 1 && wpk_begins(op_type, "Reduce");
    }
    found += strlen(word);
    return input < 10 && memchr(found, '0' + (int)input, strcspn(found, " ")) != NULL;
}

/* A walk through a graph, from the last node to the first. */
struct search {
    const struct wpk_ort *ort;
    struct wpk_arena arena;
    const char *const *names; /* [count], the group's inputs */
    size_t count;
    bool *decides;  /* [count] */
    bool *is_asked; /* [id_count]: a shape is computed from the node of this id */
    size_t id_count;
};

/* Note that a shape is computed from this value. */
static struct ort_status *ask(struct search *search, const struct ort_value_info *value)
{
    const struct wpk_ort *ort = search->ort;
    struct ort_status *status = NULL;
    const struct ort_node *producer = NULL;
    const char *name;
    size_t output, id;
    WPK_ORT_TRY(ort->GetValueInfoName(value, &name));
    for (size_t i = 0; i < search->count; i++) {
        search->decides[i] |= strcmp(name, search->names[i]) == 0;
    }
    WPK_ORT_TRY(ort->ValueInfo_GetValueProducer(value, &producer, &output));
    if (producer != NULL) {
        WPK_ORT_TRY(ort->Node_GetId(producer, &id));
        if (id < search->id_count) {
            search->is_asked[id] = true;
        }
    }
done:
    return status;
}

static struct ort_status *look_at(struct search *search, const struct ort_node *node)
{
    const struct wpk_ort *ort = search->ort;
    struct ort_status *status = NULL;
    const char *op_type;
    const struct ort_value_info **inputs;
    size_t id, count;
    WPK_ORT_TRY(ort->Node_GetId(node, &id));
    WPK_ORT_TRY(ort->Node_GetOperatorType(node, &op_type));
    if (strcmp(op_type, "Shape") == 0 || strcmp(op_type, "Size") == 0) {
        return NULL; /* these read extents alone, which every key has */
    }
    WPK_ORT_LIST(&search->arena, Node, Inputs, node, inputs, count);
    for (size_t i = 0; i < count; i++) {
        if (inputs[i] != NULL && (search->is_asked[id] || is_shape_input(op_type, i))) {
            WPK_ORT_TRY(ask(search, inputs[i]));
        }
    }
done:
    return status;
}

struct ort_status *wpk_shape_inputs_find(const struct wpk_ort *ort, const struct ort_graph *graph,
                                         const char *const *names, size_t count, bool *decides)
{
    struct search search = {.ort = ort, .names = names, .count = count, .decides = decides};
    struct ort_status *status = NULL;
    const struct ort_node **nodes;
    size_t node_count;
    wpk_arena_init(&search.arena, 0);
    WPK_ORT_LIST(&search.arena, Graph, Nodes, graph, nodes, node_count);
    for (size_t i = 0; i < node_count; i++) {
        size_t id;
        WPK_ORT_TRY(ort->Node_GetId(nodes[i], &id));
        search.id_count = id < search.id_count ? search.id_count : id + 1;
    }
    WPK_ORT_TAKE(&search.arena, search.id_count, search.is_asked);
    /* A node comes after those that it reads from. */
    for (size_t i = node_count; i-- > 0;) {
        WPK_ORT_TRY(look_at(&search, nodes[i]));
    }
done:
    wpk_arena_fini(&search.arena);
    return status;
}
