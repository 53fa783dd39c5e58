/* SPDX-License-Identifier: Apache-2.0 */
/* Backwards through the nodes near the inputs: each one's program says what it needs of its
 * operands, and functions that no program says are asked by their kind. */
#include "ir/data_index.h"
#include "model/operator/lower.h"

#include <stdlib.h>

#define DEPTH_MAX 16       /* nodes between an input and the node that limits it */
#define ELEMENTS_MAX 65536 /* of a constant whose range is looked for */

struct finding {
    const struct wpk_graph *graph;
    struct wpk_domain *values; /* owned; [value_count] */
    int *depth;                /* owned; [value_count] nodes from the nearest input */
};

static void find_depths(struct finding *f)
{
    const struct wpk_graph *graph = f->graph;

    for (int v = 0; v < graph->value_count; v++) {
        f->depth[v] = graph->values[v].is_input ? 0 : DEPTH_MAX;
        f->values[v] = wpk_domain_all();
    }
    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_graph_node *node = &graph->nodes[n];
        int *depth = &f->depth[node->outputs[0]];
        for (int i = 0; i < node->input_count; i++) {
            int of_input = node->inputs[i] >= 0 ? f->depth[node->inputs[i]] : DEPTH_MAX;
            *depth = of_input + 1 < *depth ? of_input + 1 : *depth;
        }
    }
}

/* The least and the largest element of a constant. */
static struct wpk_domain range_of(const struct wpk_graph_value *value)
{
    struct wpk_domain range = wpk_domain_all();
    int64_t count = wpk_graph_elements(value);

    if (value->data == NULL || count == 0 || count > ELEMENTS_MAX) {
        return range;
    }
    range.low = wpk_graph_element(value, 0);
    range.high = range.low;
    for (int64_t i = 1; i < count; i++) {
        double element = wpk_graph_element(value, i);
        range.low = element < range.low ? element : range.low;
        range.high = element > range.high ? element : range.high;
    }
    return range;
}

/* A scatter needs indices of the axes that they are of. */
static void need_index(struct finding *f, const struct wpk_graph_node *node,
                       const struct wpk_model_plan_host *host)
{
    const struct wpk_graph_value *x = wpk_graph_input(f->graph, node, 0);
    const struct wpk_graph_value *indices = wpk_graph_input(f->graph, node, 1);

    if (host->op != WPK_MODEL_PLAN_SCATTER || indices->rank == 0) {
        return;
    }
    int first = host->axis < 0 ? 0 : host->axis;
    int64_t count = host->axis < 0 ? indices->extent[indices->rank - 1] : 1;
    for (int d = first; d < first + count; d++) {
        wpk_domain_narrow(&f->values[node->inputs[1]],
                          (struct wpk_domain){0, (double)x->extent[d] - 1});
    }
}

static void need_operands(struct finding *f, const struct wpk_lowered *lowered, int output)
{
    const struct wpk_program *p = &lowered->program;
    struct wpk_domain tensors[WPK_TENSORS_MAX];

    for (int t = 0; t < p->tensor_count; t++) {
        tensors[t] = t < lowered->operand_count ? range_of(&f->graph->values[lowered->operand[t]])
                                                : wpk_domain_all();
    }
    tensors[wpk_program_output(p)] = f->values[output];
    wpk_domain_find(p, tensors);
    for (int t = 0; t < lowered->operand_count; t++) {
        int64_t low, high;
        if (wpk_index_bound(p, t, &low, &high)) { /* models seldom count from the end */
            wpk_domain_narrow(&tensors[t], (struct wpk_domain){0, (double)high});
        }
        if (f->graph->values[lowered->operand[t]].data == NULL) {
            wpk_domain_narrow(&f->values[lowered->operand[t]], tensors[t]);
        }
    }
}

static wpk_err visit(struct finding *f, int n)
{
    const struct wpk_graph_node *node = &f->graph->nodes[n];
    struct wpk_model_plan_host host;
    const struct wpk_lowered *lowered = NULL;

    if (f->graph->values[node->outputs[0]].data != NULL ||
        f->depth[node->outputs[0]] >= DEPTH_MAX) {
        return WPK_OK;
    }
    if (wpk_graph_host(f->graph, n, &host)) {
        need_index(f, node, &host);
        return WPK_OK;
    }
    wpk_err err = wpk_graph_lower(f->graph, n, &lowered, NULL);
    if (err == WPK_OK) {
        need_operands(f, lowered, node->outputs[0]);
    }
    return err == WPK_ENOMEM ? err : WPK_OK; /* a Shape has no program */
}

wpk_err wpk_graph_domains(const struct wpk_graph *graph, struct wpk_domain *out)
{
    struct finding f = {.graph = graph};
    wpk_err err = WPK_OK;

    f.values = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*f.values)));
    f.depth = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*f.depth)));
    find_depths(&f);
    for (int n = graph->node_count - 1; err == WPK_OK && n >= 0; n--) {
        err = visit(&f, n);
    }
    for (int i = 0; err == WPK_OK && i < graph->input_count; i++) {
        out[i] = f.values[graph->inputs[i]];
    }
    free(f.values);
    free(f.depth);
    return err;
}
