/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include "model/operator/operator.h"

#include <stdio.h>
#include <string.h>

#define DET_MAX 4 /* rows of a matrix: it has n! products */

/* Input `index` as a list of extents.   returns  false: it is none */
static bool read_extents(const struct wpk_expansion *e, int index, int64_t *out, int *count)
{
    const struct wpk_graph_value value = wpk_expansion_input(e, index);

    if (value.rank != 1 || wpk_graph_integers(&value, out, WPK_RANK_MAX, count) != WPK_OK) {
        return false;
    }
    for (int d = 0; d < *count; d++) {
        if (out[d] < 1 || out[d] > WPK_ELEMENTS_MAX) {
            return false;
        }
    }
    return true;
}

wpk_err wpk_expand_affine_grid(struct wpk_expansion *e)
{
    const struct wpk_graph_value theta = wpk_expansion_input(e, 0);
    bool is_aligned = wpk_graph_int(e->node, "align_corners", 0) != 0;
    int64_t size[WPK_RANK_MAX];
    int count = 0;

    if (!read_extents(e, 1, size, &count) || count < 3 || theta.rank != 3 ||
        !wpk_dtype_is_float(theta.dtype) || theta.extent[0] != size[0] ||
        theta.extent[1] != count - 2 || theta.extent[2] != count - 1) {
        return wpk_expansion_refuse(e, "its size is no constant list of extents, or its matrices "
                                       "do not fit it");
    }
    int axes = count - 2;
    int64_t extent[WPK_RANK_MAX] = {size[0]};
    memcpy(extent + 1, size + 2, (size_t)axes * sizeof(int64_t));
    extent[axes + 1] = axes;
    wpk_buf_printf(&e->text, "Y[%s] = X[d0,d%d,%d]", wpk_axis_names(axes + 2), axes + 1, axes);
    for (int j = 0; j < axes; j++) { /* the matrix has the last axis first */
        int axis = axes - j;
        double step = 2.0 / (double)(extent[axis] - (is_aligned && extent[axis] > 1));
        wpk_buf_printf(&e->text, " + X[d0,d%d,%d] * (%.17g * %s(d%d) - %.17g)", axes + 1, j, step,
                       wpk_dtype_name(theta.dtype), axis, is_aligned ? 1 : 1 - step / 2);
    }
    (void)wpk_expansion_equation(e, e->node->inputs, 1, theta.dtype, axes + 2, extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

wpk_err wpk_expand_feature_extractor(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value indices = wpk_expansion_input(e, 1);
    const struct wpk_graph_attribute axis = wpk_compose_integer("axis", x.rank - 1);
    int64_t extent[WPK_RANK_MAX];
    int rank = x.rank > 1 ? x.rank : 2;

    if (x.rank < 1 || wpk_dtype_is_float(indices.dtype)) {
        return wpk_expansion_refuse(e, "its input is a scalar, or its indices are no integers");
    }
    const int64_t count = wpk_graph_elements(&indices);
    int flat = wpk_compose_reshape(&e->to, e->node->inputs[1], "", 1, &count, -1);
    int found = wpk_compose_operator(&e->to, "", "Gather", "", (int[]){e->node->inputs[0], flat}, 2,
                                     &axis, 1, -1);
    extent[0] = 1;
    memcpy(extent + rank - x.rank, x.extent, (size_t)x.rank * sizeof(int64_t));
    extent[rank - 1] = count;
    (void)wpk_compose_reshape(&e->to, found, e->node->name, rank, extent,
                              wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- Col2Im */

/* A ConvTranspose whose kernel has one element that is 1 for each of its inputs. */
struct folding {
    int axes;
    int64_t image[WPK_RANK_MAX], block[WPK_RANK_MAX], count[WPK_RANK_MAX], rest[WPK_RANK_MAX];
    int64_t stride[WPK_RANK_MAX], dilation[WPK_RANK_MAX], pad[2 * WPK_RANK_MAX];
};

static bool describe_folding(const struct wpk_expansion *e, const struct wpk_graph_value *x,
                             struct folding *out)
{
    int axes = 0;
    bool fits = read_extents(e, 1, out->image, &out->axes) &&
                read_extents(e, 2, out->block, &axes) && axes == out->axes && axes >= 1 &&
                axes <= WPK_RANK_MAX / 2 &&
                wpk_expansion_list(e, "strides", axes, 1, out->stride) &&
                wpk_expansion_list(e, "dilations", axes, 1, out->dilation) &&
                wpk_expansion_list(e, "pads", 2 * axes, 0, out->pad);

    for (int d = 0; fits && d < axes; d++) {
        int64_t span = out->image[d] + out->pad[d] + out->pad[axes + d] -
                       out->dilation[d] * (out->block[d] - 1) - 1;
        out->count[d] = span / out->stride[d] + 1;
        out->rest[d] = span % out->stride[d];
        fits = span >= 0;
    }
    return fits && x->rank == 3 && wpk_dtype_is_float(x->dtype) &&
           x->extent[1] % wpk_extents_product(out->block, axes) == 0 &&
           x->extent[2] == wpk_extents_product(out->count, axes);
}

static int add_identity(struct wpk_expansion *e, enum wpk_dtype dtype, const struct folding *f)
{
    int64_t size = wpk_extents_product(f->block, f->axes);
    int64_t extent[WPK_RANK_MAX] = {size, 1};
    double *cells =
        size <= 4096 ? WPK_ARENA_NEW(&e->graph->arena, double, (size_t)(size * size)) : NULL;

    if (cells == NULL) {
        return -1;
    }
    for (int64_t i = 0; i < size * size; i++) {
        cells[i] = i / size == i % size;
    }
    memcpy(extent + 2, f->block, (size_t)f->axes * sizeof(int64_t));
    return wpk_expansion_constant(e, dtype, f->axes + 2, extent, cells);
}

wpk_err wpk_expand_col2im(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    struct folding f = {.axes = 0};

    if (!describe_folding(e, &x, &f)) {
        return wpk_expansion_refuse(e, "its input does not fit the blocks of its image, which must "
                                       "be constants");
    }
    int64_t size = wpk_extents_product(f.block, f.axes);
    int64_t extent[WPK_RANK_MAX] = {x.extent[0] * x.extent[1] / size, size};
    int kernel = add_identity(e, x.dtype, &f);
    if (kernel < 0) {
        return wpk_expansion_refuse(e, "its block has more than 4096 elements");
    }
    memcpy(extent + 2, f.count, (size_t)f.axes * sizeof(int64_t));
    int blocks = wpk_compose_reshape(&e->to, e->node->inputs[0], "", f.axes + 2, extent, -1);
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integers(&e->to, "strides", f.stride, f.axes),
        wpk_compose_integers(&e->to, "dilations", f.dilation, f.axes),
        wpk_compose_integers(&e->to, "pads", f.pad, 2 * f.axes),
        wpk_compose_integers(&e->to, "output_padding", f.rest, f.axes)};
    int image =
        wpk_expansion_node(e, "", "ConvTranspose", (int[]){blocks, kernel}, 2, attributes, 4, -1);
    extent[0] = x.extent[0];
    extent[1] = x.extent[1] / size;
    memcpy(extent + 2, f.image, (size_t)f.axes * sizeof(int64_t));
    (void)wpk_compose_reshape(&e->to, image, "", f.axes + 2, extent, wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- by data */

wpk_err wpk_expand_compress(struct wpk_expansion *e)
{
    struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value condition = wpk_expansion_input(e, 1);
    struct wpk_graph_value *out = &e->graph->values[e->node->outputs[0]];
    bool is_flat = wpk_graph_attribute(e->node, "axis", WPK_ATTRIBUTE_INT) == NULL;
    int data = e->node->inputs[0];
    int axis = 0;

    if (is_flat) {
        const int64_t count = wpk_graph_elements(&x);
        data = wpk_compose_reshape(&e->to, data, "", 1, &count, -1);
        x.rank = 1;
        x.extent[0] = count;
    }
    wpk_err err = wpk_operator_axis_of(e->node, 0, x.rank, &axis, e->diag);
    if (err != WPK_OK) {
        return err;
    }
    bool is_fixed = out->is_fixed && out->rank == x.rank;
    int64_t count = is_fixed ? out->extent[axis] : 0;
    out->is_fixed = false;
    if (condition.dtype != WPK_BOOL || condition.rank != 1 ||
        condition.extent[0] > x.extent[axis]) {
        return wpk_expansion_refuse(e, "its condition is no list of bool, or longer than its axis");
    }
    if (condition.data == NULL && !is_fixed) {
        return wpk_fail(e->diag, WPK_EUNSUPPORTED,
                        "data decides how many elements remain; --shape %s=EXTENT,... fixes it",
                        out->name);
    }
    int found = wpk_compose_unary(&e->to, "NonZero", e->node->inputs[1]);
    struct wpk_graph_value *indices = &e->graph->values[found];
    indices->is_fixed = condition.data == NULL;
    indices->rank = 2;
    indices->extent[0] = 1;
    indices->extent[1] = count;
    const int64_t first = 0;
    const struct wpk_graph_attribute axes = wpk_compose_integers(&e->to, "axes", &first, 1);
    const struct wpk_graph_attribute of_axis = wpk_compose_integer("axis", axis);
    int list = wpk_compose_operator(&e->to, "", "Squeeze", "", &found, 1, &axes, 1, -1);
    (void)wpk_expansion_node(e, "", "Gather", (int[]){data, list}, 2, &of_axis, 1,
                             e->node->outputs[0]);
    return WPK_OK;
}

wpk_err wpk_expand_reverse_sequence(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value lengths = wpk_expansion_input(e, 1);
    int64_t batch = wpk_graph_int(e->node, "batch_axis", 1);
    int64_t time = wpk_graph_int(e->node, "time_axis", 0);

    if (x.rank < 2 || batch < 0 || batch > 1 || time != 1 - batch || lengths.rank != 1 ||
        lengths.extent[0] != x.extent[batch] || wpk_dtype_is_float(lengths.dtype)) {
        return wpk_expansion_refuse(e, "its axes are not the first two, or its lengths do not fit");
    }
    int64_t extent[WPK_RANK_MAX] = {x.extent[0] * x.extent[1]};
    memcpy(extent + 1, x.extent + 2, (size_t)(x.rank - 2) * sizeof(int64_t));
    int rows = wpk_compose_reshape(&e->to, e->node->inputs[0], "", x.rank - 1, extent, -1);
    /* a length beyond the axis reads inside it, too */
    wpk_buf_printf(&e->text,
                   "Y[d0,d1] = i64(d%d) * %lld + %lld * select(i64(d%d) < L[d%d], L[d%d] - 1 - "
                   "i64(d%d), i64(d%d)) where L[d%d:%lld] = min(max(i64(X[d%d]), 0), %lld)",
                   (int)batch, (long long)(batch == 0 ? x.extent[1] : 1),
                   (long long)(batch == 0 ? 1 : x.extent[1]), (int)time, (int)batch, (int)batch,
                   (int)time, (int)time, (int)batch, (long long)x.extent[batch], (int)batch,
                   (long long)x.extent[time]);
    int indices = wpk_expansion_equation(e, &e->node->inputs[1], 1, WPK_I64, 2, x.extent, -1);
    (void)wpk_expansion_gather(e, rows, indices, wpk_expansion_output(e, 0));
    return WPK_OK;
}

wpk_err wpk_expand_tensor_scatter(struct wpk_expansion *e)
{
    static const int64_t zero = 0;
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value update = wpk_expansion_input(e, 1);
    const struct wpk_graph_value places = wpk_expansion_input(e, 2);
    bool is_circular = strcmp(wpk_graph_text(e->node, "mode", "linear"), "circular") == 0;
    char place[32];
    int axis = 0;

    wpk_err err = wpk_operator_axis_of(e->node, -2, x.rank, &axis, e->diag);
    bool fits = err == WPK_OK && axis > 0 && update.rank == x.rank && update.dtype == x.dtype &&
                (places.rank < 0 || (places.rank == 1 && places.extent[0] == x.extent[0] &&
                                     !wpk_dtype_is_float(places.dtype)));
    for (int d = 0; fits && d < x.rank; d++) {
        fits = d == axis ? update.extent[d] <= x.extent[d] : update.extent[d] == x.extent[d];
    }
    if (!fits) {
        return err == WPK_OK ? wpk_expansion_refuse(e, "its inputs do not fit each other") : err;
    }
    long long size = (long long)x.extent[axis], added = (long long)update.extent[axis];
    int64_t lines = wpk_extents_product(x.extent, axis);
    const int64_t extent[] = {lines * (size + added),
                              wpk_extents_product(x.extent + axis + 1, x.rank - axis - 1)};
    int index = places.rank < 0 ? wpk_compose_constant(&e->to, WPK_I64, 1, (int64_t[]){1}, &zero)
                                : e->node->inputs[2];
    int both = wpk_compose_concat(&e->to, e->node->inputs, 2, axis, -1);
    wpk_buf_printf(&e->text,
                   "Y[d0,d1] = i64(d0) * %lld + select(R[d0,d1] >= 0 && R[d0,d1] < %lld, "
                   "R[d0,d1] + %lld, i64(d1)) where R[d0:%lld,d1:%lld] = ",
                   size + added, added, size, (long long)lines, size);
    snprintf(place, sizeof(place), places.rank < 0 ? "0" : "d0/%lld",
             (long long)(lines / x.extent[0]));
    wpk_buf_printf(&e->text,
                   is_circular ? "(i64(d1) - i64(X[%s])) %% %lld" : "i64(d1) - i64(X[%s])", place,
                   size);
    int indices = wpk_expansion_equation(e, &index, 1, WPK_I64, 2, (int64_t[]){lines, size}, -1);
    int rows = wpk_compose_reshape(&e->to, both, "", 2, extent, -1);
    int found = wpk_expansion_gather(e, rows, indices, -1);
    (void)wpk_compose_reshape(&e->to, found, "", x.rank, x.extent, wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- Det */

/* Append the product of a permutation's elements with its sign. */
static void print_term(struct wpk_expansion *e, const int *columns, int size, int rank)
{
    int turns = 0;

    for (int i = 0; i < size; i++) {
        for (int j = 0; j < i; j++) {
            turns += columns[j] > columns[i];
        }
    }
    wpk_buf_append_text(&e->text, turns % 2 == 0 ? " + " : " - ");
    for (int i = 0; i < size; i++) {
        wpk_buf_printf(&e->text, "%sX[%s%s%d,%d]", i > 0 ? " * " : "", wpk_axis_names(rank - 2),
                       rank > 2 ? "," : "", i, columns[i]);
    }
}

wpk_err wpk_expand_det(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    int size = x.rank >= 2 && x.extent[x.rank - 1] <= DET_MAX ? (int)x.extent[x.rank - 1] : 0;
    int columns[DET_MAX];
    int total = 1;

    if (size == 0 || x.extent[x.rank - 2] != size || !wpk_dtype_is_float(x.dtype)) {
        return wpk_expansion_refuse(e, "its input is no matrices of up to 4 rows and as many "
                                       "columns, of f32 or f64");
    }
    wpk_buf_printf(&e->text, "Y[%s] = 0", wpk_axis_names(x.rank - 2));
    for (int i = 0; i < size; i++) {
        total *= size;
    }
    for (int code = 0; code < total; code++) { /* its digits; those of a permutation differ */
        int rest = code;
        int seen = 0;
        for (int i = 0; i < size; i++, rest /= size) {
            columns[i] = rest % size;
            seen |= 1 << columns[i];
        }
        if (seen == (1 << size) - 1) {
            print_term(e, columns, size, x.rank);
        }
    }
    (void)wpk_expansion_equation(e, e->node->inputs, 1, x.dtype, x.rank - 2, x.extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- MaxUnpool */

/* The extents that a pool had whose output the input is.   returns  false: not well formed */
static bool find_unpooled(const struct wpk_expansion *e, const struct wpk_graph_value *x,
                          int64_t *out)
{
    int64_t kernel[WPK_RANK_MAX], stride[WPK_RANK_MAX], pad[2 * WPK_RANK_MAX];
    int axes = x->rank - 2;
    bool fits = axes >= 1 && wpk_expansion_list(e, "kernel_shape", axes, 1, kernel) &&
                wpk_expansion_list(e, "strides", axes, 1, stride) &&
                wpk_expansion_list(e, "pads", 2 * axes, 0, pad);

    for (int d = 0; fits && d < axes; d++) {
        out[d + 2] = (x->extent[d + 2] - 1) * stride[d] + kernel[d] - pad[d] - pad[axes + d];
        fits = out[d + 2] >= 1 && out[d + 2] <= WPK_ELEMENTS_MAX;
    }
    out[0] = x->extent[0];
    out[1] = x->extent[1];
    return fits;
}

/* Indices count the elements of the whole tensor, so that it is scattered to as a list. */
wpk_err wpk_expand_max_unpool(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value indices = wpk_expansion_input(e, 1);
    int64_t extent[WPK_RANK_MAX], wanted[WPK_RANK_MAX], pads[2 * WPK_RANK_MAX] = {0};
    const int64_t count = wpk_graph_elements(&x);
    int rank = x.rank;

    if (!find_unpooled(e, &x, extent) || !wpk_graph_same_shape(&x, &indices) ||
        indices.dtype != WPK_I64 || !wpk_dtype_is_float(x.dtype) || 2 * rank > WPK_RANK_MAX) {
        return wpk_expansion_refuse(e, "its indices or attributes do not fit its input");
    }
    memcpy(wanted, extent, sizeof(wanted));
    if (wpk_expansion_input(e, 2).rank >= 0 &&
        (!read_extents(e, 2, wanted, &rank) || rank != x.rank)) {
        return wpk_expansion_refuse(e, "its output_shape must be a constant, one for each axis");
    }
    const int64_t size = wpk_extents_product(extent, rank);
    double *zeros = WPK_ARENA_NEW(&e->graph->arena, double, (size_t)size);
    if (zeros == NULL) {
        return WPK_ENOMEM;
    }
    const int lists[] = {wpk_expansion_constant(e, x.dtype, 1, &size, zeros),
                         wpk_compose_reshape(&e->to, e->node->inputs[1], "", 1, &count, -1),
                         wpk_compose_reshape(&e->to, e->node->inputs[0], "", 1, &count, -1)};
    int found = wpk_expansion_node(e, "", "ScatterElements", lists, 3, NULL, 0, -1);
    for (int d = 0; d < rank; d++) {
        pads[rank + d] = wanted[d] - extent[d];
    }
    const struct wpk_graph_attribute widths = wpk_compose_integers(&e->to, "pads", pads, 2 * rank);
    int whole = wpk_compose_reshape(&e->to, found, "", rank, extent, -1);
    (void)wpk_compose_operator(&e->to, "", "Pad", "", &whole, 1, &widths, 1,
                               wpk_expansion_output(e, 0));
    return WPK_OK;
}
