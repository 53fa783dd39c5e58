/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/mapping.h"

#include "model/operator/operator.h"

#include <string.h>

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Slice one axis of `extent` elements by ONNX's rules for indices beyond its ends. */
static wpk_err slice_axis(int64_t start, int64_t end, int64_t step, int64_t extent, int axis,
                          struct wpk_operator_slice *out, struct wpk_diag *diag)
{
    if (step == 0 || step > WPK_ELEMENTS_MAX || step < -WPK_ELEMENTS_MAX) {
        return wpk_fail(diag, WPK_EINVAL, "a step of %lld", (long long)step);
    }
    start += start < 0 ? extent : 0;
    end += end < 0 ? extent : 0;
    start = clamp(start, 0, step > 0 ? extent : extent - 1);
    end = clamp(end, step > 0 ? 0 : -1, extent);
    int64_t span = step > 0 ? end - start : start - end;
    int64_t size = step > 0 ? step : -step;
    out->start[axis] = start;
    out->step[axis] = step;
    out->count[axis] = span > 0 ? (span + size - 1) / size : 0;
    return WPK_OK;
}

/* The lengths of a Split's outputs, if they are given, are those of all, and its input's length. */
static wpk_err check_split(int64_t extent, const struct wpk_graph_attribute *listed,
                           const struct wpk_graph_value *given, int outputs, struct wpk_diag *diag)
{
    int64_t total = 0;
    int64_t count = listed != NULL ? listed->count : given != NULL ? wpk_graph_elements(given) : 0;

    if (listed == NULL && given == NULL) {
        return WPK_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t part = listed != NULL ? listed->integers[i] : (int64_t)wpk_graph_element(given, i);
        if (part < 0 || part > extent - total) {
            total = -1;
            break;
        }
        total += part;
    }
    if (count != outputs || total != extent) {
        return wpk_fail(diag, WPK_EINVAL,
                        "its split does not give its input's %lld elements to its %d outputs",
                        (long long)extent, outputs);
    }
    return WPK_OK;
}

/* A list of extents, or equal ones, of which the last is smaller if they do not divide. */
static wpk_err split(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                     struct wpk_operator_slice *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    const struct wpk_graph_value *given = wpk_graph_input(graph, node, 1);
    const struct wpk_graph_attribute *listed =
        wpk_graph_attribute(node, "split", WPK_ATTRIBUTE_INTS);
    int64_t parts = wpk_graph_int(node, "num_outputs", node->part_count);
    int64_t begin = 0;
    int64_t count = 0;
    int axis = 0;

    wpk_err err = wpk_operator_axis_of(node, 0, x->rank, &axis, diag);
    if (err != WPK_OK) {
        return err;
    }
    if ((listed != NULL && listed->count <= node->part) || parts <= node->part ||
        parts > WPK_ELEMENTS_MAX ||
        (given != NULL && (given->data == NULL || wpk_dtype_is_float(given->dtype) ||
                           wpk_graph_elements(given) <= node->part))) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "its split must be a constant of an integer for each output");
    }
    err = check_split(x->extent[axis], listed, given, node->part_count, diag);
    if (err != WPK_OK) {
        return err;
    }
    for (int i = 0; i <= node->part; i++) {
        int64_t each = (x->extent[axis] + parts - 1) / parts;
        begin += count;
        count = listed != NULL                   ? listed->integers[i]
                : given != NULL                  ? wpk_graph_integer(given, i)
                : begin + each > x->extent[axis] ? x->extent[axis] - begin
                                                 : each;
        if (count < 0 || count > x->extent[axis] - begin) {
            return wpk_fail(diag, WPK_EINVAL, "its outputs have more elements than its input");
        }
    }
    out->start[axis] = begin;
    out->count[axis] = count;
    return WPK_OK;
}

wpk_err wpk_operator_slice(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                           struct wpk_operator_slice *out, struct wpk_diag *diag)
{
    /* Attributes before opset 10, inputs since. */
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    int64_t list[4][WPK_RANK_MAX];
    int count[4] = {0};
    wpk_err err = WPK_OK;

    for (int d = 0; d < x->rank; d++) {
        out->start[d] = 0;
        out->step[d] = 1;
        out->count[d] = x->extent[d];
    }
    if (strcmp(node->op, "Split") == 0) {
        return split(graph, node, out, diag);
    }
    for (int i = 0; err == WPK_OK && i < 4; i++) {
        err = wpk_operator_integers(graph, node, names[i], i + 1, list[i], &count[i], diag);
        if (err == WPK_ENOENT && i >= 2) {
            count[i] = count[0];
            for (int k = 0; k < count[0]; k++) {
                list[i][k] = i == 2 ? k : 1;
            }
            err = WPK_OK;
        }
        if (err == WPK_ENOENT || (err == WPK_OK && count[i] != count[0])) {
            err = wpk_fail(diag, WPK_EINVAL, "its starts, ends, axes and steps differ in number");
        }
    }
    for (int i = 0; err == WPK_OK && i < count[0]; i++) {
        int axis;
        err = wpk_operator_axis(list[2][i], x->rank, &axis, diag);
        if (err == WPK_OK) {
            err = slice_axis(list[0][i], list[1][i], list[3][i], x->extent[axis], axis, out, diag);
        }
    }
    return err;
}

wpk_err wpk_graph_add_integers(struct wpk_graph *graph, const int64_t *integers, int count,
                               int *out)
{
    int64_t *data = WPK_ARENA_DEMAND(&graph->arena, int64_t, (size_t)count);
    wpk_err err = wpk_graph_add_value(graph, "", out);

    if (err == WPK_OK) {
        memcpy(data, integers, (size_t)count * sizeof(*data));
        graph->values[*out] = (struct wpk_graph_value){.name = "",
                                                       .dtype = WPK_I64,
                                                       .is_typed = true,
                                                       .is_shaped = true,
                                                       .rank = 1,
                                                       .extent = {count},
                                                       .data = data,
                                                       .size = (size_t)count * sizeof(*data),
                                                       .writer = -1,
                                                       .is_read = true};
    }
    return err;
}

wpk_err wpk_graph_make_slice(struct wpk_graph *graph, const struct wpk_graph_node *of, int from,
                             int dim, int64_t begin, int64_t end, struct wpk_graph_node *out)
{
    const int64_t integers[] = {begin, end, dim};
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, 4);
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < 3; i++) {
        err = wpk_graph_add_integers(graph, &integers[i], 1, &inputs[i + 1]);
    }
    if (err == WPK_OK) {
        inputs[0] = from;
        *out = (struct wpk_graph_node){.name = of->name,
                                       .op = "Slice",
                                       .domain = "",
                                       .inputs = inputs,
                                       .input_count = 4,
                                       .outputs = of->outputs,
                                       .output_count = 1,
                                       .part_count = 1,
                                       .loop = of->loop,
                                       .times = of->times};
    }
    return err;
}
