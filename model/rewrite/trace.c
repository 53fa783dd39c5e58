/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite/rewrite.h"

/* A search for a use of `axis`. */
struct search {
    int axis;
    bool found;
};

static void look(const struct wpk_program *p, int node, void *user)
{
    struct search *search = user;

    search->found = search->found ||
                    (p->nodes[node].kind == WPK_NODE_AXIS && p->nodes[node].axis == search->axis);
}

int wpk_trace_load(const struct wpk_program *p, const struct wpk_node *load, int axis)
{
    int dim = WPK_TRACE_NONE;

    for (int d = 0; d < p->tensors[load->tensor].rank; d++) {
        struct search search = {.axis = axis};
        wpk_node_walk(p, load->index[d], true, look, &search);
        if (search.found && (dim >= 0 || wpk_index_axis(p, load->index[d]) != axis)) {
            return WPK_TRACE_MIXED;
        }
        dim = search.found ? d : dim;
    }
    return dim;
}

bool wpk_trace_dims(const struct wpk_program *p, int axis, int *dims)
{
    for (int t = 0; t < p->tensor_count; t++) {
        dims[t] = WPK_TRACE_UNREAD;
    }
    dims[p->stages[p->stage_count - 1].output] = axis;
    for (int s = p->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &p->stages[s];
        if (dims[stage->output] < 0 || wpk_node_has_axis(p, stage->expr)) {
            return false;
        }
        for (struct wpk_loads load = wpk_loads_of(p, stage); wpk_loads_next(&load);) {
            int *dim = &dims[load.node->tensor];
            int found = wpk_trace_load(p, load.node, dims[stage->output]);
            if (found == WPK_TRACE_MIXED || (*dim != WPK_TRACE_UNREAD && *dim != found)) {
                return false;
            }
            *dim = found;
        }
    }
    return true;
}
