/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/plans.h"

#include <string.h>

/* The inputs that an operator's output shape is computed from; bit i stands for input i. Axes are
 * among them, because Woodpecker compiles a node with constant axes alone. */
static unsigned find_shape_inputs(const char *op_type)
{
    static const struct {
        const char *op_type;
        unsigned inputs;
    } rows[] = {
        {"CenterCropPad", 1 << 1},
        {"Col2Im", 1 << 1 | 1 << 2},
        {"ConstantOfShape", 1 << 0},
        {"CumSum", 1 << 1},
        {"Expand", 1 << 1},
        {"MaxUnpool", 1 << 2},
        {"OneHot", 1 << 1},
        {"Pad", 1 << 1 | 1 << 3},
        {"Range", 1 << 0 | 1 << 1 | 1 << 2},
        {"Reshape", 1 << 1},
        {"Slice", 0x1e},
        {"Split", 1 << 1},
        {"Resize", 1 << 1 | 1 << 2 | 1 << 3},
        {"Squeeze", 1 << 1},
        {"Tile", 1 << 1},
        {"TopK", 1 << 1},
        {"Trilu", 1 << 1},
        {"Unsqueeze", 1 << 1},
        {"Upsample", 1 << 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(op_type, rows[i].op_type) == 0) {
            return rows[i].inputs;
        }
    }
    return strncmp(op_type, "Reduce", strlen("Reduce")) == 0 ? 1 << 1 : 0;
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
    bool all = search->is_asked[id];
    unsigned some = find_shape_inputs(op_type);
    /* These two read extents alone, which every key has. */
    if ((!all && some == 0) || strcmp(op_type, "Shape") == 0 || strcmp(op_type, "Size") == 0) {
        return NULL;
    }
    WPK_ORT_LIST(&search->arena, Node, Inputs, node, inputs, count);
    for (size_t i = 0; i < count; i++) {
        if (inputs[i] != NULL && (all || (i < 32 && (some >> i & 1) != 0))) {
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
