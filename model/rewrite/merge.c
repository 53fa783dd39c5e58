/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with one equation become one node along output axis d if each operand is
 *
 *     the same value for all, and is not read by d;
 *     a constant of each, and d is the index of one of its dimensions, and of no other; or
 *     the output of each, when the nodes before them became one along that dimension.
 *
 * The equation of the one node is then the same, and element k of the first node's output is its
 * element k, those of the second follow, and so on. */
#include "model/rewrite/rewrite.h"

#include "model/operator/mapping.h"
#include "model/operator/view.h"

#include <stdlib.h>
#include <string.h>

/* ---- what may be merged */

static bool is_constant(const struct wpk_graph *graph, int value)
{
    return value >= 0 && graph->values[value].data != NULL;
}

/* The inputs of both are the same values but for constants, and outputs of the level before. */
static bool fit(const struct wpk_joint *m, int first, int other, const int *parts)
{
    const struct wpk_graph *graph = m->graph;
    const struct wpk_graph_node *a = &graph->nodes[first];
    const struct wpk_graph_node *b = &graph->nodes[other];
    bool is_shared = parts != NULL;

    if (!(strcmp(a->op, b->op) == 0 && strcmp(a->domain, b->domain) == 0 &&
          a->input_count == b->input_count && a->part == b->part && a->loop == b->loop &&
          wpk_graph_same_attributes(a, b))) {
        return false;
    }
    for (int i = 0; i < a->input_count; i++) {
        bool is_part = parts != NULL && a->inputs[i] == parts[0] && b->inputs[i] == parts[1];
        bool is_each = is_constant(graph, a->inputs[i]) && is_constant(graph, b->inputs[i]) &&
                       graph->values[a->inputs[i]].dtype == graph->values[b->inputs[i]].dtype;
        if (a->inputs[i] == b->inputs[i]) {
            is_shared = is_shared || (a->inputs[i] >= 0 && !is_constant(graph, a->inputs[i]));
        } else if (!is_part && !is_each) {
            return false;
        }
    }
    return is_shared;
}

/* The level's nodes can become one along output axis level->dim; operand_dim is filled in. */
static bool follow(const struct wpk_joint *m, const struct wpk_lowered *lowered,
                   struct wpk_joint_level *level)
{
    const struct wpk_graph_node *first = &m->graph->nodes[level->nodes[0]];
    int dims[WPK_TENSORS_MAX];
    bool any = false;

    if (!wpk_trace_dims(&lowered->program, level->dim, dims)) {
        return false;
    }
    for (int k = 0; k < first->input_count; k++) {
        bool differs = false;
        level->operand_dim[k] = -1;
        for (int t = 0; t < lowered->operand_count; t++) {
            if (lowered->operand[t] == first->inputs[k]) {
                level->operand_dim[k] = dims[t];
            }
        }
        for (int j = 1; j < m->member_count; j++) {
            differs = differs || m->graph->nodes[level->nodes[j]].inputs[k] != first->inputs[k];
        }
        /* A constant that all share is repeated where the axis runs over it. */
        if (differs ? level->operand_dim[k] < 0
                    : level->operand_dim[k] >= 0 && !is_constant(m->graph, first->inputs[k])) {
            return false;
        }
        any = any || level->operand_dim[k] >= 0;
    }
    return any;
}

/* All extents but that along which they follow each other are the same. */
static bool same_extents(const struct wpk_joint *m, int value, int other, int dim)
{
    const struct wpk_graph_value *a = &m->graph->values[value];
    const struct wpk_graph_value *b = &m->graph->values[other];
    bool same = a->rank == b->rank && a->dtype == b->dtype;

    for (int d = 0; same && d < a->rank; d++) {
        same = d == dim || a->extent[d] == b->extent[d];
    }
    return same;
}

static bool same_shapes(const struct wpk_joint *m, const struct wpk_joint_level *level)
{
    const struct wpk_graph_node *first = &m->graph->nodes[level->nodes[0]];

    for (int j = 1; j < m->member_count; j++) {
        const struct wpk_graph_node *node = &m->graph->nodes[level->nodes[j]];
        if (!same_extents(m, first->outputs[0], node->outputs[0], level->dim)) {
            return false;
        }
        for (int k = 0; k < first->input_count; k++) {
            if (level->operand_dim[k] >= 0 &&
                !same_extents(m, first->inputs[k], node->inputs[k], level->operand_dim[k])) {
                return false;
            }
        }
    }
    return true;
}

/* The equations of the level's nodes read alike. */
static bool same_texts(const struct wpk_joint *m, const struct wpk_joint_level *level,
                       const struct wpk_lowered *first)
{
    bool same = true;

    for (int j = 1; same && j < m->member_count; j++) {
        const struct wpk_lowered *lowered = wpk_graph_lowered(m->graph, level->nodes[j]);
        same = lowered != NULL &&
               strcmp(wpk_buf_text(&lowered->text), wpk_buf_text(&first->text)) == 0;
    }
    return same;
}

/* True for products and convolutions. */
static bool has_sum(const struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        if (program->stages[s].reduction == WPK_REDUCE_SUM) {
            return true;
        }
    }
    return false;
}

/* Find the axis along which the level's nodes can become one.   shape  before: the level before,
 * whose outputs they read; NULL: none */
static bool find_dim(const struct wpk_joint *m, const struct wpk_joint_level *before,
                     struct wpk_joint_level *level)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(m->graph, level->nodes[0]);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    bool found = false;

    bool fits = p != NULL && wpk_program_loads_fit(p) && (before != NULL || has_sum(p)) &&
                same_texts(m, level, lowered);
    int rank = m->graph->values[m->graph->nodes[level->nodes[0]].outputs[0]].rank;
    for (level->dim = 0; fits && level->dim < rank; level->dim++) {
        found = follow(m, lowered, level) && same_shapes(m, level);
        for (int k = 0; found && before != NULL && k < m->graph->nodes[level->nodes[0]].input_count;
             k++) {
            if (m->graph->nodes[level->nodes[0]].inputs[k] ==
                m->graph->nodes[before->nodes[0]].outputs[0]) {
                found = level->operand_dim[k] == before->dim;
            }
        }
        if (found) {
            break;
        }
    }
    return found;
}

/* ---- whether they should be */

static int only_reader(const struct wpk_joint *m, int value)
{
    if (m->uses[value] != 1) {
        return -1;
    }
    for (int n = 0; n < m->graph->node_count; n++) {
        for (int i = 0; i < m->graph->nodes[n].input_count; i++) {
            if (m->graph->nodes[n].inputs[i] == value) {
                return n;
            }
        }
    }
    return -1;
}

/* A node that reads a slice as well as it reads a whole value, so that the slice is no step. */
static bool reads_slice(const struct wpk_joint *m, int node, int value)
{
    int output = m->graph->nodes[node].outputs[0];

    if (!wpk_graph_keeps_elements(&m->graph->nodes[node])) {
        return wpk_graph_reads_inside(m->graph, node, value, false);
    }
    int reader = only_reader(m, output);
    return wpk_graph_is_movement(m->graph, node) && reader >= 0 && reads_slice(m, reader, output);
}

/* A slice of the merged value is memory that lies in one piece, or its only reader reads it. */
static bool is_free(const struct wpk_joint *m, const struct wpk_joint_level *level, int member)
{
    int value = m->graph->nodes[level->nodes[member]].outputs[0];
    const struct wpk_graph_value *out = &m->graph->values[value];
    int reader = only_reader(m, value);
    int64_t before = wpk_extents_product(out->extent, level->dim);

    for (int n = 0; n < m->graph->node_count; n++) {
        const struct wpk_graph_node *node = &m->graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            /* It would be computed with the member, or place the member's output in its own. */
            if (node->inputs[i] == value &&
                ((m->uses[value] == 1 &&
                  wpk_graph_read_mapping(m->graph, n, value) == WPK_MAPPING_ONE_TO_ONE) ||
                 wpk_operator_find(node->op, node->domain)->kind == WPK_KIND_CONCAT)) {
                return false;
            }
        }
    }
    return before == 1 || (reader >= 0 && reads_slice(m, reader, value));
}

/* Let the readers of the last level become one, too. False: they cannot. */
static bool add_level(struct wpk_joint *m)
{
    const struct wpk_joint_level *before = &m->levels[m->level_count - 1];
    struct wpk_joint_level *level = &m->levels[m->level_count];

    if (m->level_count == WPK_JOINT_LEVELS_MAX) {
        return false;
    }
    for (int j = 0; j < m->member_count; j++) {
        int parts[2] = {m->graph->nodes[before->nodes[0]].outputs[0],
                        m->graph->nodes[before->nodes[j]].outputs[0]};
        level->nodes[j] = only_reader(m, parts[1]);
        if (level->nodes[j] < 0 || wpk_graph_keeps_elements(&m->graph->nodes[level->nodes[j]]) ||
            !fit(m, level->nodes[0], level->nodes[j], parts)) {
            return false;
        }
        for (int k = 0; k < j; k++) {
            if (level->nodes[k] == level->nodes[j]) {
                return false;
            }
        }
    }
    if (!find_dim(m, before, level)) {
        return false;
    }
    m->level_count++;
    return true;
}

/* Find what becomes one with the node. False: nothing does. */
static bool find_members(struct wpk_joint *m, int node)
{
    const struct wpk_graph *graph = m->graph;

    m->level_count = 1;
    m->member_count = 1;
    m->levels[0].nodes[0] = node;
    for (int n = node + 1; n < graph->node_count && m->member_count < WPK_JOINT_MEMBERS_MAX; n++) {
        if (fit(m, node, n, NULL)) {
            m->levels[0].nodes[m->member_count++] = n;
        }
    }
    while (m->member_count >= 2) {
        int removed = -1;
        m->level_count = 1;
        if (!find_dim(m, NULL, &m->levels[0])) {
            return false;
        }
        while (add_level(m)) {
        }
        for (int j = 0; removed < 0 && j < m->member_count; j++) {
            removed = is_free(m, &m->levels[m->level_count - 1], j) ? -1 : j;
        }
        if (removed < 0) {
            return true;
        }
        if (removed == 0) {
            return false;
        }
        m->member_count--;
        for (int l = 0; l < m->level_count; l++) {
            for (int j = removed; j < m->member_count; j++) {
                m->levels[l].nodes[j] = m->levels[l].nodes[j + 1];
            }
        }
    }
    return false;
}

static void count_uses(struct wpk_joint *m)
{
    free(m->uses);
    m->uses = wpk_graph_count_uses(m->graph);
}

wpk_err wpk_graph_merge(struct wpk_graph *graph)
{
    struct wpk_joint m = {.graph = graph};
    wpk_err err = WPK_OK;

    count_uses(&m);
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        if (!is_constant(graph, graph->nodes[n].outputs[0]) && find_members(&m, n)) {
            err = wpk_joint_apply(&m);
            count_uses(&m);
        }
    }
    free(m.uses);
    return err;
}
