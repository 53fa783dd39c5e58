/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/interpret.h"
#include "model/operator/mapping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 0x1p-40
#define LARGE 0x1p26 /* addend over factor, beyond which the factor has too few bits */

/* The degree of the expression in tensor `x`: 0, 1, or 2 for what is not known to be less. */
static int degree(const struct wpk_program *p, int id, int x)
{
    const struct wpk_node *node = &p->nodes[id];
    int a = 0;
    int b = 0;

    switch (node->kind) {
    case WPK_NODE_LITERAL:
        return 0;
    case WPK_NODE_LOAD:
        return node->tensor == x ? 1 : 0;
    case WPK_NODE_CAST:
        a = degree(p, node->arg[0], x);
        return a == 0 || wpk_dtype_is_float(node->dtype) ? a : 2;
    case WPK_NODE_UNARY:
        a = degree(p, node->arg[0], x);
        return a == 0 || node->op == WPK_UNARY_NEG ? a : 2;
    case WPK_NODE_BINARY:
        a = degree(p, node->arg[0], x);
        b = degree(p, node->arg[1], x);
        if (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_SUB) {
            return a > b ? a : b;
        }
        if (node->op == WPK_BINARY_MUL) {
            return a + b < 2 ? a + b : 2;
        }
        return b == 0 && (a == 0 || node->op == WPK_BINARY_DIV) ? a : 2;
    default:
        return 2;
    }
}

/* The one axis that constants are read by, or WPK_AFFINE_ALL. False: several, or not known. */
static bool find_axis(const struct wpk_program *p, int x, int *axis)
{
    *axis = WPK_AFFINE_ALL;
    for (struct wpk_loads load = wpk_loads_of(p, &p->stages[0]); wpk_loads_next(&load);) {
        for (int d = 0; load.node->tensor != x && d < p->tensors[load.node->tensor].rank; d++) {
            struct wpk_affine index;
            if (!wpk_index_affine(p, load.node->index[d], &index)) {
                return false;
            }
            for (int a = 0; a < p->stages[0].axis_count; a++) {
                if (index.coefficient[a] != 0 && *axis != WPK_AFFINE_ALL && *axis != a) {
                    return false;
                }
                *axis = index.coefficient[a] != 0 ? a : *axis;
            }
        }
    }
    return true;
}

/* Operand x of a node whose output is affine in it; -1: it has none. */
static int find_operand(const struct wpk_graph *graph, int node, int *dim)
{
    int output = graph->nodes[node].outputs[0];
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    int x = -1;

    bool fits = p != NULL && p->stage_count == 1 && p->stages[0].reduction == WPK_REDUCE_NONE &&
                wpk_program_loads_fit(p) && !wpk_node_has_axis(p, p->stages[0].expr);
    for (int i = 0; fits && i < lowered->operand_count; i++) {
        if (graph->values[lowered->operand[i]].data == NULL) {
            fits = x < 0;
            x = i;
        }
    }
    fits = fits && x >= 0 && degree(p, p->stages[0].expr, x) == 1 && find_axis(p, x, dim);
    int value = fits ? lowered->operand[x] : -1;
    if (value < 0 || graph->values[value].dtype != WPK_F32 ||
        graph->values[output].dtype != WPK_F32 ||
        graph->values[value].rank != graph->values[output].rank ||
        memcmp(graph->values[value].extent, graph->values[output].extent,
               (size_t)graph->values[value].rank * sizeof(int64_t)) != 0 ||
        wpk_graph_read_mapping(graph, node, value) != WPK_MAPPING_ONE_TO_ONE) {
        return -1;
    }
    return value;
}

/* Compute the node for x = `at` everywhere. */
static wpk_err evaluate(const struct wpk_graph *graph, int node, int x, int64_t count, double at,
                        double *out)
{
    double **values = calloc((size_t)graph->value_count, sizeof(*values));
    double *data = calloc((size_t)count, sizeof(*data));
    wpk_err err = values != NULL && data != NULL ? WPK_OK : WPK_ENOMEM;

    for (int64_t i = 0; err == WPK_OK && i < count; i++) {
        data[i] = at;
    }
    if (err == WPK_OK) {
        values[x] = data;
        err = wpk_graph_interpret_node(graph, node, values, out, NULL);
    }
    free(values);
    free(data);
    return err;
}

/* One element of each channel says what the node does to all. */
static wpk_err evaluate_line(struct wpk_graph *graph, int node, struct wpk_graph_affine *affine)
{
    struct wpk_graph_value *x = &graph->values[affine->x];
    struct wpk_graph_value *y = &graph->values[graph->nodes[node].outputs[0]];
    struct wpk_graph_value whole_x = *x;
    struct wpk_graph_value whole_y = *y;

    for (int d = 0; d < x->rank; d++) {
        x->extent[d] = d == affine->dim ? x->extent[d] : 1;
        y->extent[d] = x->extent[d];
    }
    wpk_err err = evaluate(graph, node, affine->x, affine->count, 0, affine->addend);
    err = err == WPK_OK ? evaluate(graph, node, affine->x, affine->count, 1, affine->factor) : err;
    *x = whole_x;
    *y = whole_y;
    for (int64_t k = 0; err == WPK_OK && k < affine->count; k++) {
        double b = fabs(affine->addend[k]);
        affine->factor[k] -= affine->addend[k];
        double f = affine->factor[k];
        affine->factor[k] = fabs(f - 1) <= ROUNDING ? 1 : f;
        /* The factor is a difference: beside a large addend it has too few bits. */
        if (!isfinite(f) || !isfinite(b) || (b > LARGE * fabs(f) && !(f == 0 && b <= LARGE))) {
            err = WPK_EUNSUPPORTED;
        }
    }
    return err;
}

wpk_err wpk_graph_affine_find(struct wpk_graph *graph, int node, struct wpk_graph_affine *out)
{
    *out = (struct wpk_graph_affine){.x = -1};
    if (graph->values[graph->nodes[node].outputs[0]].data != NULL) {
        return WPK_ENOENT;
    }
    out->x = find_operand(graph, node, &out->dim);
    if (out->x < 0 || graph->values[out->x].writer < 0) {
        return WPK_ENOENT;
    }
    out->count = out->dim >= 0 ? graph->values[out->x].extent[out->dim] : 1;
    out->factor = calloc((size_t)out->count, sizeof(double));
    out->addend = calloc((size_t)out->count, sizeof(double));
    if (out->factor == NULL || out->addend == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = evaluate_line(graph, node, out);
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ENOENT;
}

void wpk_graph_affine_fini(struct wpk_graph_affine *affine)
{
    free(affine->factor);
    free(affine->addend);
    *affine = (struct wpk_graph_affine){.x = -1};
}
