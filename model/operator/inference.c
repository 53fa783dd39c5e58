/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/inference.h"

#include <math.h>
#include <string.h>

wpk_err wpk_infer_as(const struct wpk_inference *in, const struct wpk_graph_value *value)
{
    in->out->rank = value->rank;
    memcpy(in->out->extent, value->extent, sizeof(in->out->extent));
    return WPK_OK;
}

wpk_err wpk_infer_like(const struct wpk_inference *in)
{
    return wpk_infer_as(in, in->x);
}

/* Widen out's extents by those of `with`, aligned at the last axis.   errors  WPK_EINVAL */
static wpk_err broadcast(const struct wpk_inference *in, const struct wpk_graph_value *with)
{
    struct wpk_graph_value *out = in->out;
    int64_t extent[WPK_RANK_MAX];
    int rank = out->rank > with->rank ? out->rank : with->rank;

    for (int d = 0; d < rank; d++) {
        int a = d - (rank - out->rank);
        int b = d - (rank - with->rank);
        int64_t from = a >= 0 ? out->extent[a] : 1;
        int64_t to = b >= 0 ? with->extent[b] : 1;
        if (from != to && from != 1 && to != 1) {
            return wpk_fail(in->diag, WPK_EINVAL,
                            "its inputs do not broadcast: extents %lld and %lld", (long long)from,
                            (long long)to);
        }
        extent[d] = from != 1 ? from : to;
    }
    out->rank = rank;
    memcpy(out->extent, extent, (size_t)(rank) * sizeof(int64_t));
    return WPK_OK;
}

wpk_err wpk_infer_pointwise(const struct wpk_inference *in)
{
    wpk_err err = wpk_infer_like(in);

    for (int i = 1; err == WPK_OK && i < in->node->input_count; i++) {
        err = broadcast(in, &in->graph->values[in->node->inputs[i]]);
    }
    return err;
}

static bool is_zero(const struct wpk_graph_value *value)
{
    return value != NULL && value->data != NULL && wpk_graph_elements(value) == 1 &&
           wpk_graph_element(value, 0) == 0;
}

/* The shape of input 0, to which the inputs that scale and shift it must broadcast. */
wpk_err wpk_infer_same(const struct wpk_inference *in)
{
    bool reduced[WPK_RANK_MAX];
    bool is_channelwise = in->op->axes != WPK_AXES_FROM;
    wpk_err err = wpk_infer_like(in);

    for (int i = 1; err == WPK_OK && i < in->node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(in->graph, in->node, i);
        if (input == NULL) {
            continue;
        }
        if (strcmp(in->node->op, "Dropout") == 0) {
            if (i == 2 && !is_zero(input) && !is_zero(wpk_graph_input(in->graph, in->node, 1))) {
                return wpk_fail(in->diag, WPK_EUNSUPPORTED,
                                "its training_mode or its ratio must be a constant, 0: "
                                "nothing is drawn");
            }
            continue;
        }
        int64_t channels = in->x->rank > 1 ? in->x->extent[1] : 1;
        bool fits = is_channelwise
                        ? in->x->rank >= 1 && input->rank == 1 && input->extent[0] == channels
                        : input->rank <= in->x->rank;
        if (!is_channelwise && fits) {
            err = broadcast(in, input);
            fits = err == WPK_OK && memcmp(in->out->extent, in->x->extent,
                                           (size_t)in->x->rank * sizeof(int64_t)) == 0;
        }
        if (!fits) {
            err = wpk_fail(in->diag, WPK_EINVAL, "its input number %d does not fit input 0", i);
        }
    }
    if (err == WPK_OK && in->node->part > 0 && in->op->axes == WPK_AXES_MOMENTS) {
        if (wpk_graph_int(in->node, "training_mode", 0) != 1) {
            return wpk_fail(in->diag, WPK_EUNSUPPORTED,
                            "it has further outputs only with training_mode 1");
        }
        in->out->rank = 1;
        in->out->extent[0] = in->x->rank > 1 ? in->x->extent[1] : 1;
    }
    if (err == WPK_OK && in->node->part > 0 && in->op->axes == WPK_AXES_FROM) {
        err = wpk_operator_reduced(in->graph, in->node, in->op, reduced, in->diag);
        for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
            in->out->extent[d] = reduced[d] ? 1 : in->out->extent[d];
        }
    }
    return err;
}

wpk_err wpk_infer_reduce(const struct wpk_inference *in)
{
    bool reduced[WPK_RANK_MAX];
    bool keeps = in->op->axes == WPK_AXES_SPATIAL || wpk_graph_int(in->node, "keepdims", 1) != 0;

    wpk_err err = wpk_operator_reduced(in->graph, in->node, in->op, reduced, in->diag);
    for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
        if (!reduced[d] || keeps) {
            in->out->extent[in->out->rank++] = reduced[d] ? 1 : in->x->extent[d];
        }
    }
    return err;
}

static wpk_err infer_window(const struct wpk_inference *in, const int64_t *kernel, int64_t channels)
{
    struct wpk_graph_window window;

    wpk_err err = wpk_graph_window(in->graph, in->node, kernel, &window, in->diag);
    if (err != WPK_OK) {
        return err;
    }
    in->out->rank = in->x->rank;
    in->out->extent[0] = in->x->extent[0];
    in->out->extent[1] = channels;
    memcpy(in->out->extent + 2, window.output, (size_t)window.rank * sizeof(int64_t));
    return WPK_OK;
}

wpk_err wpk_infer_conv(const struct wpk_inference *in)
{
    const struct wpk_graph_value *w = wpk_graph_input(in->graph, in->node, 1);
    const struct wpk_graph_value *b = wpk_graph_input(in->graph, in->node, 2);
    int64_t group = wpk_graph_int(in->node, "group", 1);

    if (in->x->rank < 3 || w->rank != in->x->rank) {
        return wpk_fail(in->diag, WPK_EINVAL, "its input has %d axes, its weights %d", in->x->rank,
                        w->rank);
    }
    if (group < 1 || group > in->x->extent[1] || in->x->extent[1] != w->extent[1] * group ||
        w->extent[0] % group != 0) {
        return wpk_fail(in->diag, WPK_EINVAL,
                        "%lld channels, weights for %lld in %lld groups, %lld filters",
                        (long long)in->x->extent[1], (long long)w->extent[1], (long long)group,
                        (long long)w->extent[0]);
    }
    if (b != NULL && (b->rank != 1 || b->extent[0] != w->extent[0])) {
        return wpk_fail(in->diag, WPK_EINVAL, "its bias does not have %lld elements",
                        (long long)w->extent[0]);
    }
    return infer_window(in, w->extent + 2, w->extent[0]);
}

wpk_err wpk_infer_matmul(const struct wpk_inference *in)
{
    const struct wpk_graph_value *b = wpk_graph_input(in->graph, in->node, 1);
    const struct wpk_graph_value *a = in->x;
    struct wpk_graph_value *out = in->out;

    if (a->rank < 1 || b->rank < 1) {
        return wpk_fail(in->diag, WPK_EINVAL, "an operand is a scalar");
    }
    int64_t inner = b->extent[b->rank > 1 ? b->rank - 2 : 0];
    if (a->extent[a->rank - 1] != inner) {
        return wpk_fail(in->diag, WPK_EINVAL, "rows of %lld elements, columns of %lld",
                        (long long)a->extent[a->rank - 1], (long long)inner);
    }
    /* The batch: all but the last two axes, or less. */
    struct wpk_graph_value batch = *b;
    out->rank = a->rank > 2 ? a->rank - 2 : 0;
    memcpy(out->extent, a->extent, (size_t)out->rank * sizeof(int64_t));
    batch.rank = b->rank > 2 ? b->rank - 2 : 0;
    wpk_err err = broadcast(in, &batch);
    if (err == WPK_OK && a->rank > 1) {
        out->extent[out->rank++] = a->extent[a->rank - 2];
    }
    if (err == WPK_OK && b->rank > 1) {
        out->extent[out->rank++] = b->extent[b->rank - 1];
    }
    return err;
}

wpk_err wpk_infer_gemm(const struct wpk_inference *in)
{
    const struct wpk_graph_value *b = wpk_graph_input(in->graph, in->node, 1);
    const struct wpk_graph_value *c = wpk_graph_input(in->graph, in->node, 2);
    bool trans_a = wpk_graph_int(in->node, "transA", 0) != 0;
    bool trans_b = wpk_graph_int(in->node, "transB", 0) != 0;

    if (in->x->rank != 2 || b->rank != 2 || in->x->extent[!trans_a] != b->extent[trans_b]) {
        return wpk_fail(in->diag, WPK_EINVAL,
                        "its operands are no matrices, or their inner extents differ");
    }
    in->out->rank = 2;
    in->out->extent[0] = in->x->extent[trans_a];
    in->out->extent[1] = b->extent[!trans_b];
    int64_t extent[2] = {in->out->extent[0], in->out->extent[1]};
    wpk_err err = c != NULL ? broadcast(in, c) : WPK_OK;
    if (err == WPK_OK && (in->out->rank != 2 || memcmp(extent, in->out->extent, sizeof(extent)))) {
        err =
            wpk_fail(in->diag, WPK_EINVAL, "its input number 2 does not broadcast to the product");
    }
    return err;
}

wpk_err wpk_infer_reshape(const struct wpk_inference *in)
{
    int64_t wanted[WPK_RANK_MAX];
    int64_t known = 1;
    int free_axis = -1;
    bool zero_copies = wpk_graph_int(in->node, "allowzero", 0) == 0;

    wpk_err err =
        wpk_operator_integers(in->graph, in->node, "shape", 1, wanted, &in->out->rank, in->diag);
    for (int d = 0; err == WPK_OK && d < in->out->rank; d++) {
        int64_t extent =
            wanted[d] == 0 && zero_copies && d < in->x->rank ? in->x->extent[d] : wanted[d];
        if (extent == -1 && free_axis < 0) {
            free_axis = d;
            continue;
        }
        if (extent < 1 || extent > WPK_ELEMENTS_MAX / known) {
            return wpk_fail(in->diag, WPK_EINVAL, "extent %lld of its shape", (long long)wanted[d]);
        }
        in->out->extent[d] = extent;
        known *= extent;
    }
    int64_t count = wpk_graph_elements(in->x);
    if (err == WPK_OK && free_axis >= 0) {
        in->out->extent[free_axis] = count / known;
        known *= count / known;
    }
    if (err == WPK_OK && known != count) {
        err = wpk_fail(in->diag, WPK_EINVAL, "its shape has %lld elements, its input %lld",
                       (long long)known, (long long)count);
    }
    return err;
}

wpk_err wpk_infer_flatten(const struct wpk_inference *in)
{
    int64_t axis = wpk_graph_int(in->node, "axis", 1);

    axis += axis < 0 ? in->x->rank : 0;
    if (axis < 0 || axis > in->x->rank) {
        return wpk_fail(in->diag, WPK_EINVAL, "axis %lld of %d", (long long)axis, in->x->rank);
    }
    in->out->rank = 2;
    in->out->extent[0] = 1;
    in->out->extent[1] = 1;
    for (int d = 0; d < in->x->rank; d++) {
        in->out->extent[d >= axis] *= in->x->extent[d];
    }
    return WPK_OK;
}

wpk_err wpk_infer_squeeze(const struct wpk_inference *in)
{
    int64_t axes[WPK_RANK_MAX];
    bool listed[WPK_RANK_MAX] = {false};
    int count = 0;
    int axis;

    wpk_err err = wpk_operator_integers(in->graph, in->node, "axes", 1, axes, &count, in->diag);
    for (int d = 0; err == WPK_ENOENT && d < in->x->rank; d++) {
        listed[d] = in->x->extent[d] == 1;
    }
    err = err == WPK_ENOENT ? WPK_OK : err;
    for (int i = 0; err == WPK_OK && i < count; i++) {
        err = wpk_operator_axis(axes[i], in->x->rank, &axis, in->diag);
        if (err == WPK_OK && in->x->extent[axis] != 1) {
            err = wpk_fail(in->diag, WPK_EINVAL, "axis %d has %lld elements", axis,
                           (long long)in->x->extent[axis]);
        } else if (err == WPK_OK) {
            listed[axis] = true;
        }
    }
    for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
        if (!listed[d]) {
            in->out->extent[in->out->rank++] = in->x->extent[d];
        }
    }
    return err;
}

wpk_err wpk_infer_unsqueeze(const struct wpk_inference *in)
{
    int64_t axes[WPK_RANK_MAX];
    bool listed[WPK_RANK_MAX] = {false};
    int count = 0;
    int from = 0;
    int axis;

    wpk_err err = wpk_operator_integers(in->graph, in->node, "axes", 1, axes, &count, in->diag);
    if (err == WPK_ENOENT || (err == WPK_OK && in->x->rank + count > WPK_RANK_MAX)) {
        err = wpk_fail(in->diag, WPK_EINVAL, "it has no axes, or too many");
    }
    in->out->rank = in->x->rank + count;
    for (int i = 0; err == WPK_OK && i < count; i++) {
        err = wpk_operator_axis(axes[i], in->out->rank, &axis, in->diag);
        if (err == WPK_OK && listed[axis]) {
            err = wpk_fail(in->diag, WPK_EINVAL, "axis %d is listed twice", axis);
        } else if (err == WPK_OK) {
            listed[axis] = true;
        }
    }
    for (int d = 0; err == WPK_OK && d < in->out->rank; d++) {
        in->out->extent[d] = listed[d] ? 1 : in->x->extent[from++];
    }
    return err;
}

wpk_err wpk_infer_transpose(const struct wpk_inference *in)
{
    int order[WPK_RANK_MAX];

    wpk_err err = wpk_operator_order(in->node, in->x->rank, order, in->diag);
    in->out->rank = in->x->rank;
    for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
        in->out->extent[d] = in->x->extent[order[d]];
    }
    return err;
}

wpk_err wpk_infer_concat(const struct wpk_inference *in)
{
    int axis = 0;

    wpk_err err = wpk_operator_axis_of(in->node, 0, in->x->rank, &axis, in->diag);
    err = err == WPK_OK ? wpk_infer_like(in) : err;
    for (int i = 1; err == WPK_OK && i < in->node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(in->graph, in->node, i);
        bool fits = input != NULL && input->rank == in->x->rank;
        for (int d = 0; fits && d < in->x->rank; d++) {
            fits = d == axis || input->extent[d] == in->x->extent[d];
        }
        if (!fits) {
            err = wpk_fail(in->diag, WPK_EINVAL,
                           "its input number %d has other extents than input 0", i);
        } else {
            in->out->extent[axis] += input->extent[axis];
        }
    }
    return err;
}

wpk_err wpk_infer_slice(const struct wpk_inference *in)
{
    struct wpk_operator_slice slice;

    wpk_err err = wpk_operator_slice(in->graph, in->node, &slice, in->diag);
    if (err == WPK_OK) {
        in->out->rank = in->x->rank;
        memcpy(in->out->extent, slice.count, (size_t)in->x->rank * sizeof(int64_t));
    }
    return err;
}

wpk_err wpk_infer_expand(const struct wpk_inference *in)
{
    struct wpk_graph_value shape = {.rank = 0};

    wpk_err err =
        wpk_operator_integers(in->graph, in->node, "shape", 1, shape.extent, &shape.rank, in->diag);
    for (int d = 0; err == WPK_OK && d < shape.rank; d++) {
        if (shape.extent[d] < 1) {
            return wpk_fail(in->diag, WPK_EINVAL, "extent %lld of its shape",
                            (long long)shape.extent[d]);
        }
    }
    err = err == WPK_OK ? wpk_infer_like(in) : err;
    return err == WPK_OK ? broadcast(in, &shape) : err;
}

wpk_err wpk_infer_pad(const struct wpk_inference *in)
{
    int64_t before[WPK_RANK_MAX];
    int64_t after[WPK_RANK_MAX];

    wpk_err err = wpk_operator_pads(in->graph, in->node, before, after, in->diag);
    in->out->rank = in->x->rank;
    for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
        in->out->extent[d] = in->x->extent[d] + before[d] + after[d];
    }
    return err;
}

wpk_err wpk_infer_conv_transpose(const struct wpk_inference *in)
{
    const struct wpk_graph_value *w = wpk_graph_input(in->graph, in->node, 1);
    const struct wpk_graph_value *b = wpk_graph_input(in->graph, in->node, 2);
    int64_t group = wpk_graph_int(in->node, "group", 1);
    struct wpk_graph_window window;

    if (in->x->rank < 3 || w->rank != in->x->rank || w->extent[0] != in->x->extent[1] ||
        group < 1 || w->extent[0] % group != 0 || group > w->extent[0] ||
        w->extent[1] > WPK_ELEMENTS_MAX / group) {
        return wpk_fail(in->diag, WPK_EINVAL, "its weights do not fit its input");
    }
    if (b != NULL && (b->rank != 1 || b->extent[0] != w->extent[1] * group)) {
        return wpk_fail(in->diag, WPK_EINVAL, "its bias does not have %lld elements",
                        (long long)(w->extent[1] * group));
    }
    wpk_err err =
        wpk_graph_window_transposed(in->graph, in->node, w->extent + 2, &window, in->diag);
    if (err == WPK_OK) {
        in->out->rank = in->x->rank;
        in->out->extent[0] = in->x->extent[0];
        in->out->extent[1] = w->extent[1] * group;
        memcpy(in->out->extent + 2, window.output, (size_t)window.rank * sizeof(int64_t));
    }
    return err;
}

wpk_err wpk_infer_constant_of_shape(const struct wpk_inference *in)
{
    wpk_err err = wpk_graph_integers(in->x, in->out->extent, WPK_RANK_MAX, &in->out->rank);

    if (err != WPK_OK) {
        err = wpk_fail(in->diag, WPK_EUNSUPPORTED, "its shape must be a constant of integers");
    }
    for (int d = 0; err == WPK_OK && d < in->out->rank; d++) {
        if (in->out->extent[d] < 0) {
            err = wpk_fail(in->diag, WPK_EINVAL, "extent %lld of its shape",
                           (long long)in->out->extent[d]);
        }
    }
    return err;
}

wpk_err wpk_infer_range(const struct wpk_inference *in)
{
    double number[3] = {0};

    for (int i = 0; i < 3; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(in->graph, in->node, i);
        if (input->rank != 0 || input->data == NULL || input->dtype != in->x->dtype) {
            return wpk_fail(in->diag, WPK_EUNSUPPORTED,
                            "its start, limit and delta must be constant numbers");
        }
        number[i] = wpk_graph_element(input, 0);
    }
    double count = ceil((number[1] - number[0]) / number[2]);
    in->out->rank = 1;
    in->out->extent[0] = count >= 1 && count <= (double)WPK_ELEMENTS_MAX ? (int64_t)count : 0;
    return WPK_OK;
}

wpk_err wpk_infer_non_zero(const struct wpk_inference *in)
{
    int64_t count = 0;

    if (in->x->data == NULL && in->out->is_fixed) {
        if (in->out->rank != 2 || in->out->extent[0] != in->x->rank) {
            return wpk_fail(in->diag, WPK_EINVAL, "--shape: its output is %d,COUNT", in->x->rank);
        }
        return WPK_OK;
    }
    if (in->x->data == NULL) {
        return wpk_fail(in->diag, WPK_EUNSUPPORTED,
                        "data decides how many elements are not 0; --shape %s=%d,COUNT fixes it",
                        in->out->name, in->x->rank);
    }
    for (int64_t i = 0; i < wpk_graph_elements(in->x); i++) {
        count += wpk_graph_element(in->x, i) != 0;
    }
    in->out->rank = 2;
    in->out->extent[0] = in->x->rank;
    in->out->extent[1] = count;
    return WPK_OK;
}

/* Of Shape, a list of the axes from `start` to `end`; of Size, a number. */
wpk_err wpk_infer_shape_of(const struct wpk_inference *in)
{
    int first = 0;
    int count = wpk_operator_shape_axes(in->node, in->x->rank, &first);

    in->out->rank = strcmp(in->op->name, "Size") == 0 ? 0 : 1;
    in->out->extent[0] = count;
    return WPK_OK;
}

wpk_err wpk_infer_equation(const struct wpk_inference *in)
{
    const struct wpk_graph_attribute *shape =
        wpk_graph_attribute(in->node, "shape", WPK_ATTRIBUTE_INTS);

    in->out->rank = shape->count;
    memcpy(in->out->extent, shape->integers, (size_t)shape->count * sizeof(int64_t));
    return WPK_OK;
}

wpk_err wpk_infer_pool(const struct wpk_inference *in)
{
    return infer_window(in, NULL, in->x->rank > 1 ? in->x->extent[1] : 1);
}

wpk_err wpk_infer_loop(const struct wpk_inference *in)
{
    const struct wpk_graph_attribute *shape =
        wpk_graph_attribute(in->node, "shape", WPK_ATTRIBUTE_INTS);
    const bool is_store = in->op->kind == WPK_KIND_LOOP_STORE;
    const int first = is_store ? 1 : 0; /* axis of what an iteration has */

    WPK_ASSERT((in->op->kind == WPK_KIND_LOOP_READ) == (shape != NULL));
    WPK_ASSERT(in->x->rank + first <= WPK_RANK_MAX);
    in->out->rank = shape != NULL ? shape->count : in->x->rank + first;
    in->out->extent[0] = is_store ? in->node->times + 1 : 0;
    memcpy(in->out->extent + first, shape != NULL ? shape->integers : in->x->extent,
           (size_t)(in->out->rank - first) * sizeof(int64_t));
    return WPK_OK;
}
