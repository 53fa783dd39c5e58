/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/shape.h"

#include "ir/cost.h"
#include "model/operator/interpret.h"
#include "model/operator/loop.h"
#include "model/operator/lower.h"
#include "model/operator/operator.h"
#include "schema/convert.h"

#include <stdlib.h>
#include <string.h>

static bool has_constant_inputs(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(graph, node, i);
        if (input != NULL && input->data == NULL) {
            return false;
        }
    }
    return true;
}

static void *new_data(struct wpk_graph *graph, const struct wpk_graph_value *value)
{
    return wpk_arena_alloc(&graph->arena, (size_t)wpk_graph_elements(value),
                           wpk_dtype_size(value->dtype));
}

static void fold_shape(const struct wpk_graph_node *node, const struct wpk_operator *op,
                       const struct wpk_graph_value *x, int64_t *out)
{
    int first = 0;
    int count = wpk_operator_shape_axes(node, x->rank, &first);

    if (strcmp(op->name, "Size") == 0) {
        *out = wpk_graph_elements(x);
    } else {
        memcpy(out, x->extent + first, (size_t)count * sizeof(int64_t));
    }
}

/* out[a, i, b] = data[a, indices[i], b], where `axis` of data lies between a and b. */
static wpk_err fold_gather(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                           char *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *data = wpk_graph_input(graph, node, 0);
    const struct wpk_graph_value *indices = wpk_graph_input(graph, node, 1);
    size_t size = wpk_dtype_size(data->dtype);
    int64_t count = wpk_graph_elements(indices);
    int axis = 0;

    if (wpk_dtype_is_float(indices->dtype)) {
        return wpk_fail(diag, WPK_EINVAL, "its indices must be integers");
    }
    wpk_err err = wpk_operator_axis_of(node, 0, data->rank, &axis, diag);
    size *= (size_t)wpk_extents_product(&data->extent[axis + 1], data->rank - 1 - axis);
    int64_t outer =
        err == WPK_OK && count > 0 ? (int64_t)(data->size / size) / data->extent[axis] : 0;
    for (int64_t a = 0; err == WPK_OK && a < outer; a++) {
        for (int64_t i = 0; i < count; i++) {
            int64_t at = wpk_graph_integer(indices, i);
            at += at < 0 ? data->extent[axis] : 0;
            if (at < 0 || at >= data->extent[axis]) {
                return wpk_fail(diag, WPK_EINVAL, "index %lld of %lld", (long long)at,
                                (long long)data->extent[axis]);
            }
            memcpy(out + (size_t)(a * count + i) * size,
                   (const char *)data->data + (size_t)(a * data->extent[axis] + at) * size, size);
        }
    }
    return err;
}

/* The indices of the elements that are not 0: out[d, k] is that of axis d of the k-th one. */
static void fold_non_zero(const struct wpk_graph_value *x, int64_t *out)
{
    int64_t count = 0;
    int64_t total = 0;

    for (int64_t i = 0; i < wpk_graph_elements(x); i++) {
        total += wpk_graph_element(x, i) != 0;
    }
    for (int64_t i = 0; i < wpk_graph_elements(x); i++) {
        int64_t rest = i;
        if (wpk_graph_element(x, i) == 0) {
            continue;
        }
        for (int d = x->rank - 1; d >= 0; d--) {
            out[d * total + count] = rest % x->extent[d];
            rest /= x->extent[d];
        }
        count++;
    }
}

/* Fill the output with the one element of attribute `value`, or 0. */
static wpk_err fill_constant(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                             char *out, struct wpk_diag *diag)
{
    const struct wpk_graph_attribute *attribute =
        wpk_graph_attribute(node, "value", WPK_ATTRIBUTE_TENSOR);
    const struct wpk_graph_value *value =
        attribute != NULL ? &graph->values[attribute->tensor] : NULL;
    const struct wpk_graph_value *output = &graph->values[node->outputs[0]];
    size_t size = wpk_dtype_size(output->dtype);

    if (value != NULL && (!value->is_typed || wpk_graph_elements(value) != 1)) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "its value must be one number of a supported type");
    }
    for (int64_t i = 0; value != NULL && i < wpk_graph_elements(output); i++) {
        memcpy(out + (size_t)i * size, value->data, size);
    }
    return WPK_OK;
}

static wpk_err fold_program(struct wpk_graph *graph, int node, void *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *value = &graph->values[graph->nodes[node].outputs[0]];
    double *cells = calloc((size_t)wpk_graph_elements(value) + 1, sizeof(double));

    if (cells == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_graph_interpret_node(graph, node, NULL, cells, diag);
    if (err == WPK_OK) {
        wpk_convert_from_cells(value->dtype, cells, wpk_graph_elements(value), out);
    }
    free(cells);
    return err;
}

static int64_t count_inputs(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    int64_t elements = 0;

    for (int i = 0; i < node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(graph, node, i);
        elements += input != NULL ? wpk_graph_elements(input) : 0;
    }
    return elements;
}

/* The operations of a node.   errors  WPK_ENOENT  it has no program; WPK_ENOMEM */
static wpk_err count_work(const struct wpk_graph *graph, int node, double *out)
{
    const struct wpk_lowered *lowered = NULL;
    struct wpk_cost cost = {.iterations = 0};

    wpk_err err = wpk_graph_lower(graph, node, &lowered, NULL);
    if (err == WPK_OK) {
        wpk_cost(&lowered->program, &cost);
    }
    *out = cost.iterations;
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ENOENT;
}

wpk_err wpk_graph_fold_large(struct wpk_graph *graph, int node)
{
    struct wpk_graph_value *value = &graph->values[graph->nodes[node].outputs[0]];
    double work = 0;

    if (value->data != NULL || !has_constant_inputs(graph, &graph->nodes[node])) {
        return WPK_OK;
    }
    wpk_err err = count_work(graph, node, &work);
    if (err != WPK_OK || work > WPK_FOLD_WORK_MAX) {
        return err == WPK_OK ? WPK_ENOENT : err;
    }
    void *out = new_data(graph, value);
    err = out != NULL ? fold_program(graph, node, out, NULL) : WPK_ENOMEM;
    if (err == WPK_OK) {
        value->data = out;
        value->size = (size_t)wpk_graph_elements(value) * wpk_dtype_size(value->dtype);
    }
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ENOENT;
}

/* Fold a large node, unless its graph's work passes `work_max`, its output is much larger than its
 * inputs, or the graph has little room left.   errors  as wpk_graph_fold_large */
static wpk_err fold_within(struct wpk_graph *graph, int node, double work_max)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    const struct wpk_graph_value *value = &graph->values[n->outputs[0]];
    int64_t elements = wpk_graph_elements(value);
    double work = 0;

    if (elements > WPK_FOLD_GROWN_MAX && elements > WPK_FOLD_GROWTH * count_inputs(graph, n)) {
        return WPK_ENOENT;
    }
    if ((size_t)elements * wpk_dtype_size(value->dtype) + graph->arena.size_reserved >
        WPK_GRAPH_MEMORY_MAX) {
        return WPK_ENOENT;
    }
    double allowed = WPK_FOLD_WORK_FREE;
    for (int m = 0; m < graph->map_count; m++) {
        allowed += WPK_FOLD_WORK_A_BYTE * (double)graph->maps[m].size;
    }
    work_max = allowed < work_max ? allowed : work_max;
    wpk_err err = count_work(graph, node, &work);
    if (err == WPK_OK && graph->fold_work + work > work_max) {
        err = WPK_ENOENT;
    }
    if (err == WPK_OK) {
        graph->fold_work += work;
        err = wpk_graph_fold_large(graph, node);
    }
    return err;
}

wpk_err wpk_graph_fold(struct wpk_graph *graph, int node, struct wpk_diag *diag)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    const struct wpk_operator *op = wpk_operator_find(n->op, n->domain);
    struct wpk_graph_value *value = &graph->values[n->outputs[0]];
    bool is_shape = op->kind == WPK_KIND_SHAPE;
    wpk_err err = WPK_OK;

    bool is_gather = op->kind == WPK_KIND_GATHER;
    bool is_non_zero = op->kind == WPK_KIND_NON_ZERO && wpk_graph_input(graph, n, 0)->data != NULL;
    if (wpk_graph_is_boundary(n)) {
        return WPK_OK;
    }
    bool is_filled =
        op->kind == WPK_KIND_CONSTANT_OF_SHAPE && wpk_graph_elements(value) <= WPK_FOLD_FILLED_MAX;
    if (!is_shape && !is_non_zero && !has_constant_inputs(graph, n)) {
        return WPK_OK;
    }
    bool is_small = count_inputs(graph, n) <= WPK_FOLD_SMALL &&
                    wpk_graph_elements(&graph->values[n->outputs[0]]) <= WPK_FOLD_SMALL;
    if (!is_shape && !is_non_zero && !is_filled && !is_small &&
        !(is_gather && wpk_graph_elements(value) <= WPK_FOLD_SMALL)) {
        err = fold_within(graph, node, WPK_FOLD_READ_WORK_MAX);
        return err == WPK_ENOENT ? WPK_OK : err;
    }
    void *out = new_data(graph, value);
    if (out == NULL) {
        return WPK_ENOMEM;
    }
    if (is_shape) {
        fold_shape(n, op, wpk_graph_input(graph, n, 0), out);
    } else if (is_non_zero) {
        fold_non_zero(wpk_graph_input(graph, n, 0), out);
    } else if (is_gather) {
        err = fold_gather(graph, n, out, diag);
    } else if (op->kind == WPK_KIND_CONSTANT_OF_SHAPE) {
        err = fill_constant(graph, n, out, diag);
    } else {
        err = fold_program(graph, node, out, diag);
    }
    if (err == WPK_OK) {
        value->data = out;
        value->size = (size_t)wpk_graph_elements(value) * wpk_dtype_size(value->dtype);
    }
    return err;
}

wpk_err wpk_graph_fold_rest(struct wpk_graph *graph)
{
    wpk_err err = WPK_OK;

    graph->fold_work = 0;
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        if (graph->values[graph->nodes[n].outputs[0]].data == NULL &&
            has_constant_inputs(graph, &graph->nodes[n]) && graph->nodes[n].input_count > 0) {
            err = fold_within(graph, n, WPK_FOLD_WORK_MAX);
            err = err == WPK_ENOENT ? WPK_OK : err;
        }
    }
    return err;
}
