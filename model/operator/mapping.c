/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/mapping.h"

/* Rows: what the first group is; columns: how the second one reads its result.
 *
 * A node that computes goes where each element is computed once: into its producer's epilogue,
 * never into a window, a slice or a broadcast. A node that moves elements is no step: the reader
 * takes them from where they come. Two reductions lost to two kernels wherever measured, but for
 * those that work row by row (ir/cost.h). */
enum wpk_fusion wpk_mapping_fusion(enum wpk_mapping first, enum wpk_mapping second)
{
    static const enum wpk_fusion table[WPK_MAPPING_COUNT][WPK_MAPPING_COUNT] = {
#define NO WPK_FUSION_NO
#define TRY WPK_FUSION_MEASURE
#define YES WPK_FUSION_YES
        /*                one-to-one, shuffle, reorganize, one-to-many, many-to-many */
        /* one-to-one   */ {YES, YES, NO, NO, NO},
        /* shuffle      */ {YES, YES, YES, YES, YES},
        /* reorganize   */ {YES, YES, YES, YES, YES},
        /* one-to-many  */ {YES, YES, YES, YES, YES},
        /* many-to-many */ {YES, YES, NO, NO, TRY},
#undef NO
#undef TRY
#undef YES
    };

    return table[first][second];
}

enum wpk_mapping wpk_mapping_join(enum wpk_mapping first, enum wpk_mapping second)
{
    if (first == WPK_MAPPING_ONE_TO_ONE || second == WPK_MAPPING_ONE_TO_ONE) {
        bool reduces = first == WPK_MAPPING_MANY_TO_MANY || second == WPK_MAPPING_MANY_TO_MANY;
        return reduces ? WPK_MAPPING_MANY_TO_MANY : WPK_MAPPING_ONE_TO_ONE;
    }
    return first > second ? first : second;
}

/* The one stage of a node that is no reduction; NULL: it is one, or has several. */
static const struct wpk_stage *only_stage(const struct wpk_program *program)
{
    const struct wpk_stage *stage = &program->stages[0];

    return program->stage_count == 1 && stage->reduction == WPK_REDUCE_NONE ? stage : NULL;
}

/* How a stage reads the elements of one load. */
static enum wpk_mapping load_mapping(const struct wpk_program *p, const struct wpk_stage *stage,
                                     const struct wpk_node *load)
{
    const struct wpk_tensor *tensor = &p->tensors[load->tensor];
    bool used[WPK_AXES_MAX] = {false};
    bool is_order = tensor->rank == stage->rank;
    bool is_own = is_order;

    for (int d = 0; d < tensor->rank; d++) {
        struct wpk_affine affine;
        int axis = wpk_index_axis(p, load->index[d]);
        bool is_axis = axis >= 0 && !used[axis] && tensor->extent[d] == stage->axes[axis].extent;
        is_order = is_order && is_axis;
        is_own = is_own && is_axis && axis == d;
        if (!wpk_index_affine(p, load->index[d], &affine)) {
            return WPK_MAPPING_ONE_TO_MANY;
        }
        for (int a = 0; a < stage->rank; a++) {
            used[a] = used[a] || affine.coefficient[a] != 0;
        }
    }
    for (int a = 0; a < stage->rank; a++) {
        if (!used[a] && stage->axes[a].extent > 1) {
            return WPK_MAPPING_ONE_TO_MANY;
        }
    }
    return is_own     ? WPK_MAPPING_ONE_TO_ONE
           : is_order ? WPK_MAPPING_SHUFFLE
                      : WPK_MAPPING_REORGANIZE;
}

static bool is_of(const struct wpk_lowered *lowered, const struct wpk_node *load, int value)
{
    return load->tensor < lowered->operand_count && lowered->operand[load->tensor] == value;
}

enum wpk_mapping wpk_graph_read_mapping(const struct wpk_graph *graph, int node, int value)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    enum wpk_mapping worst = WPK_MAPPING_MANY_TO_MANY;

    if (p != NULL && wpk_program_loads_fit(p) && only_stage(p) != NULL) {
        worst = WPK_MAPPING_ONE_TO_ONE;
        for (struct wpk_loads load = wpk_loads_in(p); wpk_loads_next(&load);) {
            if (is_of(lowered, load.node, value)) {
                enum wpk_mapping mapping = load_mapping(p, load.stage, load.node);
                worst = mapping > worst ? mapping : worst;
            }
        }
    }
    return worst;
}

/* The load that is the whole program, with indices that are sums of multiples of axes; NULL: it
 * computes. */
static const struct wpk_node *only_load(const struct wpk_program *p)
{
    const struct wpk_stage *stage = p != NULL ? only_stage(p) : NULL;
    const struct wpk_node *load = stage != NULL ? &p->nodes[stage->expr] : NULL;

    if (load == NULL || load->kind != WPK_NODE_LOAD) {
        return NULL;
    }
    for (int d = 0; d < p->tensors[load->tensor].rank; d++) {
        struct wpk_affine affine;
        if (!wpk_index_affine(p, load->index[d], &affine)) {
            return NULL;
        }
    }
    return load;
}

static bool puts_zeros_around(const struct wpk_program *p, const struct wpk_stage *stage,
                              const struct wpk_node *load)
{
    bool pads = wpk_load_is_zero_outside(p, load) && p->tensors[load->tensor].rank == stage->rank;

    for (int d = 0; pads && d < stage->rank; d++) {
        struct wpk_affine affine;
        pads = wpk_index_affine(p, load->index[d], &affine) && affine.coefficient[d] == 1 &&
               affine.constant <= 0 &&
               affine.constant + stage->axes[d].extent >= p->tensors[load->tensor].extent[d];
    }
    return pads;
}

enum wpk_mapping wpk_graph_mapping(const struct wpk_graph *graph, int node)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    enum wpk_mapping mapping = WPK_MAPPING_MANY_TO_MANY;

    if (p != NULL && only_stage(p) != NULL) {
        const struct wpk_node *load = only_load(p);
        bool moves =
            load != NULL && (load->outside < 0 || puts_zeros_around(p, only_stage(p), load));
        mapping = moves ? load_mapping(p, only_stage(p), load) : WPK_MAPPING_ONE_TO_ONE;
        if (moves && mapping == WPK_MAPPING_ONE_TO_ONE) {
            mapping = WPK_MAPPING_SHUFFLE; /* no other order is one, too */
        }
    }
    return mapping;
}

bool wpk_graph_is_padding(const struct wpk_graph *graph, int node)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    const struct wpk_node *load = only_load(p);

    return load != NULL && lowered->operand[load->tensor] == graph->nodes[node].inputs[0] &&
           puts_zeros_around(p, only_stage(p), load);
}

bool wpk_graph_is_movement(const struct wpk_graph *graph, int node)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    const struct wpk_node *load = only_load(p);

    return load != NULL && load->outside < 0;
}

bool wpk_graph_reads_inside(const struct wpk_graph *graph, int node, int value, bool or_zero)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;

    if (p == NULL || !wpk_program_loads_fit(p)) {
        return false;
    }
    for (struct wpk_loads load = wpk_loads_in(p); wpk_loads_next(&load);) {
        if (is_of(lowered, load.node, value) && load.node->outside >= 0 &&
            !(or_zero && wpk_load_is_zero_outside(p, load.node))) {
            return false;
        }
    }
    return true;
}
