/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite/rewrite.h"

#include "model/operator/mapping.h"

#include <stdlib.h>
#include <string.h>

/* A value like those that follow each other along `dim`.   owns  by the graph */
static wpk_err add_joint(struct wpk_graph *graph, const int *values, int count, int dim, int *out)
{
    wpk_err err = wpk_graph_add_value(graph, "", out);

    if (err != WPK_OK) {
        return err;
    }
    struct wpk_graph_value *joint = &graph->values[*out];
    *joint = graph->values[values[0]];
    joint->name = "";
    joint->is_output = false;
    joint->writer = -1;
    for (int i = 1; i < count; i++) {
        joint->extent[dim] += graph->values[values[i]].extent[dim];
    }
    return WPK_OK;
}

/* Concatenate constants along `dim`. */
static wpk_err join_constants(struct wpk_graph *graph, const int *values, int count, int dim,
                              int *out)
{
    wpk_err err = add_joint(graph, values, count, dim, out);

    if (err != WPK_OK) {
        return err;
    }
    struct wpk_graph_value *joint = &graph->values[*out];
    size_t rows = (size_t)wpk_extents_product(joint->extent, dim);
    joint->size = (size_t)wpk_graph_elements(joint) * wpk_dtype_size(joint->dtype);
    char *data = wpk_arena_demand(&graph->arena, joint->size, 1);
    joint->data = data;
    for (size_t r = 0; r < rows; r++) {
        for (int i = 0; i < count; i++) {
            const struct wpk_graph_value *from = &graph->values[values[i]];
            size_t size = from->size / rows;
            memcpy(data, (const char *)from->data + r * size, size);
            data += size;
        }
    }
    return WPK_OK;
}

static const char *join_names(const struct wpk_joint *m, const struct wpk_joint_level *level)
{
    struct wpk_buf text = {0};

    for (int j = 0; j < m->member_count; j++) {
        wpk_buf_printf(&text, "%s%s", j > 0 ? " + " : "", m->graph->nodes[level->nodes[j]].name);
    }
    const char *copy = wpk_graph_format(m->graph, "%s", wpk_buf_text(&text));
    wpk_buf_fini(&text);
    return copy;
}

/* The node that a level becomes.   shape  before: the value that the level before has become */
static wpk_err make_node(struct wpk_joint *m, const struct wpk_joint_level *level, int before,
                         struct wpk_graph_node *out)
{
    struct wpk_graph *graph = m->graph;
    const struct wpk_graph_node *first = &graph->nodes[level->nodes[0]];
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)first->input_count + 1);
    int values[WPK_JOINT_MEMBERS_MAX];
    wpk_err err = WPK_OK;

    *out = *first;
    out->name = join_names(m, level);
    for (int k = 0; err == WPK_OK && k < first->input_count; k++) {
        for (int j = 0; j < m->member_count; j++) {
            values[j] = graph->nodes[level->nodes[j]].inputs[k];
        }
        inputs[k] = level->operand_dim[k] < 0 ? first->inputs[k] : before;
        if (level->operand_dim[k] >= 0 && graph->values[values[0]].data != NULL) {
            err = join_constants(graph, values, m->member_count, level->operand_dim[k], &inputs[k]);
        }
    }
    for (int j = 0; j < m->member_count; j++) {
        values[j] = graph->nodes[level->nodes[j]].outputs[0];
    }
    if (err == WPK_OK) {
        out->inputs = inputs;
        out->outputs = inputs + first->input_count;
        err = add_joint(graph, values, m->member_count, level->dim, &inputs[first->input_count]);
    }
    return err;
}

/* The level of which the node is a member, and whether it is the first in the graph; -1: none. */
static int find_level(const struct wpk_joint *m, int node, bool *is_first)
{
    for (int l = 0; l < m->level_count; l++) {
        for (int j = 0; j < m->member_count; j++) {
            if (m->levels[l].nodes[j] == node) {
                *is_first = true;
                for (int k = 0; k < m->member_count; k++) {
                    *is_first = *is_first && m->levels[l].nodes[k] >= node;
                }
                return l;
            }
        }
    }
    return -1;
}

/* Put the nodes that the levels become, and the slices, where the first member of each was: what
 * they read is known there. */
static wpk_err replace(struct wpk_joint *m, const struct wpk_graph_node *joint,
                       const struct wpk_graph_node *slices)
{
    struct wpk_graph *graph = m->graph;
    int count = 0;
    struct wpk_graph_node *old = wpk_graph_take_nodes(graph, &count);
    wpk_err err = WPK_OK;

    for (int n = 0; err == WPK_OK && n < count; n++) {
        bool is_first = false;
        int level = find_level(m, n, &is_first);
        if (level < 0) {
            err = wpk_graph_add_node(graph, &old[n]);
        } else if (is_first) {
            err = wpk_graph_add_node(graph, &joint[level]);
        }
        for (int j = 0;
             err == WPK_OK && is_first && level + 1 == m->level_count && j < m->member_count; j++) {
            err = wpk_graph_add_node(graph, &slices[j]);
        }
    }
    wpk_graph_end_nodes(graph, old);
    return err;
}

wpk_err wpk_joint_apply(struct wpk_joint *m)
{
    struct wpk_graph_node joint[WPK_JOINT_LEVELS_MAX];
    struct wpk_graph_node slices[WPK_JOINT_MEMBERS_MAX];
    int before = -1;
    wpk_err err = WPK_OK;

    for (int l = 0; err == WPK_OK && l < m->level_count; l++) {
        err = make_node(m, &m->levels[l], before, &joint[l]);
        before = err == WPK_OK ? joint[l].outputs[0] : -1;
        for (int j = 0; err == WPK_OK && j < m->member_count; j++) {
            const char *name = m->graph->nodes[m->levels[l].nodes[j]].name;
            err = wpk_graph_add_note(m->graph, name, "computed as one: %s", joint[l].name);
        }
    }
    if (err == WPK_OK) {
        /* The slices of the last level's output, in the members' place. */
        const struct wpk_joint_level *level = &m->levels[m->level_count - 1];
        int64_t begin = 0;
        for (int j = 0; err == WPK_OK && j < m->member_count; j++) {
            const struct wpk_graph_node *of = &m->graph->nodes[level->nodes[j]];
            int64_t end = begin + m->graph->values[of->outputs[0]].extent[level->dim];
            err = wpk_graph_make_slice(m->graph, of, before, level->dim, begin, end, &slices[j]);
            begin = end;
        }
    }
    return err == WPK_OK ? replace(m, joint, slices) : err;
}
