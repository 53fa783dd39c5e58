/* SPDX-License-Identifier: Apache-2.0 */
/* A place between the elements of an image is the sum of the elements around it, its taps, with
 * weights. The taps' numbers are an equation; a Gather, which is a host step, reads them, and one
 * more equation adds them up:
 *
 *     place[list,point]  ->  index[list,point,tap], weight[list,point,tap]
 *     rows[index], [list,point,tap,channel]  ->  sum(tap) row * weight
 *
 * source  https://onnx.ai/onnx/operators/ (GridSample, RoiAlign, DeformConv); the border of an
 *         image is treated as onnx.reference does */
#include "model/operator/expansion.h"

#include <stdio.h>
#include <string.h>

enum { AXES_MAX = 3 };

enum mode { NEAREST = 1, LINEAR = 2, CUBIC = 4 }; /* taps along an axis */

enum border {
    ZEROS,
    CLAMP,
    REFLECT,
    NEAR, /* the border's element up to one element away, then zeros */
};

struct sampler {
    struct wpk_expansion *e;
    enum wpk_dtype dtype;
    enum mode mode;
    enum border border;
    bool is_aligned; /* the border runs through the centres of the outer elements */
    int rank;        /* spatial axes */
    int64_t size[AXES_MAX];
    int64_t images, lists, points;
    int image;           /* value [lists]: the image of each list; -1: the list's own number */
    int place[AXES_MAX]; /* values [lists, points] along each axis */
    int elements;        /* value [lists, points, taps, channels] */
    int weights;         /* value [lists, points, taps] */
};

static int64_t taps_of(const struct sampler *s, int axes)
{
    int64_t taps = 1;

    for (int j = 0; j < axes; j++) {
        taps *= s->mode;
    }
    return taps;
}

/* "reflected(v)", between the borders of the axis. */
static void print_reflected(const struct sampler *s, int axis, const char *v)
{
    double least = s->is_aligned ? 0 : -0.5;
    int64_t range = s->size[axis] - (s->is_aligned && s->size[axis] > 1);
    const char *const format = "(%s - %g - %lld * floor((%s - %g) / %lld))";
    struct wpk_buf *text = &s->e->text;

    wpk_buf_printf(text, "(%g + min(", least);
    wpk_buf_printf(text, format, v, least, 2 * (long long)range, v, least, 2 * (long long)range);
    wpk_buf_printf(text, ", %lld - ", 2 * (long long)range);
    wpk_buf_printf(text, format, v, least, 2 * (long long)range, v, least, 2 * (long long)range);
    wpk_buf_append_text(text, "))");
}

/* The places along an axis with those that lie outside moved as the border says. */
static int add_inside(const struct sampler *s, int axis)
{
    struct wpk_buf *text = &s->e->text;
    long long last = (long long)s->size[axis] - 1;
    const char *v = s->mode == NEAREST ? "round(X[d0,d1])" : "X[d0,d1]";
    double beyond = s->is_aligned ? 0 : 0.5;

    wpk_buf_append_text(text, "Y[d0,d1] = ");
    if (s->border == NEAR) {
        wpk_buf_printf(text, "min(max(%s, 0), %lld)", v, last);
    } else if (s->border == ZEROS) {
        wpk_buf_append_text(text, v);
    } else {
        wpk_buf_printf(text, "select(%s < %g || %s > %g, ", v, -beyond, v, (double)last + beyond);
        if (s->border == CLAMP) {
            wpk_buf_printf(text, "min(max(%s, 0), %lld)", v, last);
        } else {
            print_reflected(s, axis, v);
        }
        wpk_buf_printf(text, ", %s)", v);
    }
    return wpk_expansion_equation(s->e, &s->place[axis], 1, s->dtype, 2,
                                  (int64_t[]){s->lists, s->points}, -1);
}

/* "(floor(X[d0,d1]) + f32(d2) - 1)": a tap of the place X. */
static void set_tap(const struct sampler *s, char out[64])
{
    snprintf(out, 64, "(floor(X[d0,d1]) + %s(d2) - %d)", wpk_dtype_name(s->dtype),
             s->mode == CUBIC ? 1 : 0);
}

/* The numbers of the taps along an axis, inside it whatever the data is. */
static int add_taps(const struct sampler *s, int axis, int inside)
{
    char tap[64];

    set_tap(s, tap);
    wpk_buf_append_text(&s->e->text, "Y[d0,d1,d2] = min(max(i64(");
    if (s->border == REFLECT) {
        print_reflected(s, axis, tap);
    } else {
        wpk_buf_append_text(&s->e->text, tap);
    }
    wpk_buf_printf(&s->e->text, "), 0), %lld)", (long long)s->size[axis] - 1);
    return wpk_expansion_equation(s->e, &inside, 1, WPK_I64, 3,
                                  (int64_t[]){s->lists, s->points, s->mode}, -1);
}

/* The weights of the taps along an axis; those of a cubic are R. Keys' with a = -0.75. */
static int add_weights(const struct sampler *s, int axis, int inside)
{
    struct wpk_buf *text = &s->e->text;
    long long size = (long long)s->size[axis];
    int inputs[] = {inside, s->place[axis]};
    char tap[64];

    set_tap(s, tap);
    wpk_buf_append_text(text, "Y[d0,d1,d2] = ");
    if (s->border == NEAR) {
        wpk_buf_printf(text, "select(X1[d0,d1] < -1 || X1[d0,d1] > %lld, 0, ", size);
    } else if (s->border == ZEROS) {
        wpk_buf_printf(text, "select(%s < 0 || %s > %lld, 0, ", tap, tap, size - 1);
    } else {
        wpk_buf_append_text(text, "(");
    }
    if (s->mode == CUBIC) {
        wpk_buf_append_text(text, "select(D[d0,d1,d2] <= 1, (1.25 * D[d0,d1,d2] - 2.25) * "
                                  "D[d0,d1,d2] * D[d0,d1,d2] + 1, ((3.75 - 0.75 * D[d0,d1,d2]) * "
                                  "D[d0,d1,d2] - 6) * D[d0,d1,d2] + 3)");
    } else {
        wpk_buf_printf(text, s->mode == LINEAR ? "1 - abs(X[d0,d1] - %s)" : "%.0s1 + 0 * X[d0,d1]",
                       tap);
    }
    wpk_buf_append_text(text, ")");
    if (s->mode == CUBIC) {
        wpk_buf_printf(text, " where D[d0:%lld,d1:%lld,d2:4] = abs(X[d0,d1] - %s)",
                       (long long)s->lists, (long long)s->points, tap);
    }
    return wpk_expansion_equation(s->e, inputs, s->border == NEAR ? 2 : 1, s->dtype, 3,
                                  (int64_t[]){s->lists, s->points, s->mode}, -1);
}

/* Join what each axis has, [lists, points, mode], over all taps: the taps' rows, or products. */
static int join(const struct sampler *s, const int *parts, bool of_rows)
{
    struct wpk_buf *text = &s->e->text;
    int inputs[AXES_MAX + 1] = {0};
    int count = s->rank;
    int64_t stride = wpk_extents_product(s->size, s->rank);

    memcpy(inputs, parts, (size_t)count * sizeof(int));
    wpk_buf_append_text(text, "Y[d0,d1,d2] = ");
    if (of_rows && s->image >= 0) {
        inputs[count++] = s->image;
        wpk_buf_printf(text, "min(max(i64(X%d[d0]), 0), %lld) * %lld + ", s->rank,
                       (long long)s->images - 1, (long long)stride);
    } else if (of_rows) {
        wpk_buf_printf(text, "i64(d0) * %lld + ", (long long)stride);
    }
    for (int j = 0; j < s->rank; j++) {
        stride /= s->size[j];
        wpk_buf_printf(text, j > 0 ? (of_rows ? " + X%d" : " * X%d") : "X%.0d", j);
        wpk_buf_printf(text, "[d0,d1,d2/%lld%%%d]", (long long)taps_of(s, s->rank - 1 - j),
                       (int)s->mode);
        if (of_rows) {
            wpk_buf_printf(text, " * %lld", (long long)stride);
        }
    }
    return wpk_expansion_equation(s->e, inputs, count, of_rows ? WPK_I64 : s->dtype, 3,
                                  (int64_t[]){s->lists, s->points, taps_of(s, s->rank)}, -1);
}

/* An image [images, channels, ...] as rows [images * elements, channels]. */
static int add_rows(const struct sampler *s, int x, int64_t images, int64_t channels)
{
    int64_t order[AXES_MAX + 2] = {0};
    const int64_t extent[] = {images * wpk_extents_product(s->size, s->rank), channels};

    for (int j = 0; j < s->rank; j++) {
        order[j + 1] = j + 2;
    }
    order[s->rank + 1] = 1;
    x = wpk_compose_transpose(&s->e->to, x, s->rank + 2, order, -1);
    return wpk_compose_reshape(&s->e->to, x, "", 2, extent, -1);
}

/* Find the elements and weights of all places. */
static void sample(struct sampler *s, int x, int64_t images, int64_t channels)
{
    int taps[AXES_MAX];
    int weights[AXES_MAX];
    int rows = add_rows(s, x, images, channels);

    s->images = images;
    for (int j = 0; j < s->rank; j++) {
        int inside = add_inside(s, j);
        taps[j] = add_taps(s, j, inside);
        weights[j] = add_weights(s, j, inside);
    }
    s->elements = wpk_expansion_gather(s->e, rows, join(s, taps, true), -1);
    s->weights = join(s, weights, false);
}

/* Take the image's spatial axes.   returns  false: more than three, or of no floating type */
static bool take_axes(struct sampler *s, const struct wpk_graph_value *x)
{
    s->rank = x->rank - 2;
    s->dtype = x->dtype;
    s->image = -1;
    if (s->rank < 1 || s->rank > AXES_MAX || !wpk_dtype_is_float(x->dtype)) {
        return false;
    }
    memcpy(s->size, x->extent + 2, (size_t)s->rank * sizeof(int64_t));
    return true;
}

/* ---- GridSample */

static void read_mode(const struct wpk_graph_node *node, struct sampler *out)
{
    const char *mode = wpk_graph_text(node, "mode", "linear");
    const char *border = wpk_graph_text(node, "padding_mode", "zeros");

    out->is_aligned = wpk_graph_int(node, "align_corners", 0) != 0;
    out->mode = strcmp(mode, "nearest") == 0                                 ? NEAREST
                : strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0 ? CUBIC
                                                                             : LINEAR;
    out->border = strcmp(border, "border") == 0       ? CLAMP
                  : strcmp(border, "reflection") == 0 ? REFLECT
                                                      : ZEROS;
}

/* The places along an axis, from the grid's numbers between -1 and 1. */
static int add_grid(const struct sampler *s, int grid, int axis)
{
    int part = s->rank - 1 - axis; /* the grid has the last axis first */
    long long size = (long long)s->size[axis];

    wpk_buf_printf(&s->e->text,
                   s->is_aligned ? "Y[d0,d1] = (X[d0,d1,%d] + 1) / 2 * %lld"
                                 : "Y[d0,d1] = ((X[d0,d1,%d] + 1) * %lld - 1) / 2",
                   part, s->is_aligned ? size - 1 : size);
    return wpk_expansion_equation(s->e, &grid, 1, s->dtype, 2, (int64_t[]){s->lists, s->points},
                                  -1);
}

/* "3*d2+d3": the number of the output's element among those of its spatial axes, from `first`. */
static void print_flat(struct wpk_buf *text, const int64_t *extent, int rank, int first)
{
    for (int j = 0; j < rank; j++) {
        wpk_buf_printf(text, "%s%lld*d%d", j > 0 ? "+" : "",
                       (long long)wpk_extents_product(extent + j + 1, rank - 1 - j), first + j);
    }
}

wpk_err wpk_expand_grid_sample(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value grid = wpk_expansion_input(e, 1);
    struct sampler s = {.e = e};
    int64_t extent[WPK_RANK_MAX] = {x.extent[0], x.extent[1]};

    if (!take_axes(&s, &x) || grid.rank != x.rank || grid.dtype != x.dtype ||
        grid.extent[0] != x.extent[0] || grid.extent[grid.rank - 1] != s.rank) {
        return wpk_expansion_refuse(e, "its image and grid do not fit each other; supported are up "
                                       "to three spatial axes of f32 or f64");
    }
    read_mode(e->node, &s);
    memcpy(extent + 2, grid.extent + 1, (size_t)s.rank * sizeof(int64_t));
    s.lists = grid.extent[0];
    s.points = wpk_extents_product(extent + 2, s.rank);
    int flat = wpk_compose_reshape(&e->to, e->node->inputs[1], "", 3,
                                   (int64_t[]){s.lists, s.points, s.rank}, -1);
    for (int j = 0; j < s.rank; j++) {
        s.place[j] = add_grid(&s, flat, j);
    }
    sample(&s, e->node->inputs[0], x.extent[0], x.extent[1]);
    wpk_buf_printf(&e->text, "Y[%s] = sum(t:%lld) X[d0,", wpk_axis_names(x.rank),
                   (long long)taps_of(&s, s.rank));
    print_flat(&e->text, extent + 2, s.rank, 2);
    wpk_buf_append_text(&e->text, ",t,d1] * X1[d0,");
    print_flat(&e->text, extent + 2, s.rank, 2);
    wpk_buf_append_text(&e->text, ",t]");
    (void)wpk_expansion_equation(e, (int[]){s.elements, s.weights}, 2, s.dtype, x.rank, extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- RoiAlign */

/* The places along an axis: `count` samples in each of the output's elements. */
static int add_roi(const struct sampler *s, int axis, int64_t height, int64_t width, int64_t count)
{
    struct wpk_expansion *e = s->e;
    bool is_half = strcmp(wpk_graph_text(e->node, "coordinate_transformation_mode", "half_pixel"),
                          "half_pixel") == 0;
    double scale = wpk_graph_real(e->node, "spatial_scale", 1);
    const char *type = wpk_dtype_name(s->dtype);
    int from = axis == 0 ? 1 : 0;
    char cell[64];
    char number[64];

    snprintf(cell, sizeof(cell), axis == 0 ? "d1/%lld" : "d1/%lld%%%lld",
             (long long)(axis == 0 ? width * count * count : count * count), (long long)width);
    snprintf(number, sizeof(number), axis == 0 ? "d1/%lld%%%lld" : "d1%%%lld", (long long)count,
             (long long)count);
    wpk_buf_printf(&e->text, "Y[d0,d1] = X[d0,%d] * %.9g - %g + ", from, scale, is_half ? 0.5 : 0);
    wpk_buf_printf(&e->text, is_half ? "(" : "max(1, ");
    wpk_buf_printf(&e->text,
                   "X[d0,%d] * %.9g - X[d0,%d] * %.9g) * (%s(%s) + (%s(%s) + 0.5) / %lld) / %lld",
                   from + 2, scale, from, scale, type, cell, type, number, (long long)count,
                   (long long)(axis == 0 ? height : width));
    return wpk_expansion_equation(e, &e->node->inputs[1], 1, s->dtype, 2,
                                  (int64_t[]){s->lists, s->points}, -1);
}

wpk_err wpk_expand_roi_align(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value rois = wpk_expansion_input(e, 1);
    const struct wpk_graph_value images = wpk_expansion_input(e, 2);
    struct sampler s = {.e = e, .mode = LINEAR, .border = NEAR};
    int64_t height = wpk_graph_int(e->node, "output_height", 1);
    int64_t width = wpk_graph_int(e->node, "output_width", 1);
    int64_t count = wpk_graph_int(e->node, "sampling_ratio", 0);
    bool is_max = strcmp(wpk_graph_text(e->node, "mode", "avg"), "max") == 0;

    if (count < 1) {
        return wpk_expansion_refuse(
            e, "its sampling_ratio is 0: data decides how many samples each of its elements has");
    }
    if (!take_axes(&s, &x) || s.rank != 2 || rois.rank != 2 || rois.extent[1] != 4 ||
        rois.dtype != x.dtype || images.rank != 1 || images.extent[0] != rois.extent[0] ||
        wpk_dtype_is_float(images.dtype) || height < 1 || width < 1 || height > 4096 ||
        width > 4096 || count > 4096) {
        return wpk_expansion_refuse(e, "its inputs do not fit each other");
    }
    const int64_t extent[] = {rois.extent[0], x.extent[1], height, width};
    s.lists = rois.extent[0];
    s.points = height * width * count * count;
    s.image = e->node->inputs[2];
    s.place[0] = add_roi(&s, 0, height, width, count);
    s.place[1] = add_roi(&s, 1, height, width, count);
    sample(&s, e->node->inputs[0], x.extent[0], x.extent[1]);
    long long samples = (long long)(count * count);
    wpk_buf_printf(&e->text,
                   "Y[d0,d1,d2,d3] = (%s(q:%lld,t:4) X[d0,%lld*d2+%lld*d3+q,t,d1] * "
                   "X1[d0,%lld*d2+%lld*d3+q,t])",
                   is_max ? "max" : "sum", samples, samples * (long long)width, samples,
                   samples * (long long)width, samples);
    if (!is_max) {
        wpk_buf_printf(&e->text, " / %lld", samples);
    }
    (void)wpk_expansion_equation(e, (int[]){s.elements, s.weights}, 2, s.dtype, 4, extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- DeformConv */

struct deformed {
    int64_t kernel[AXES_MAX], stride[AXES_MAX], dilation[AXES_MAX], pad[AXES_MAX];
    int64_t out[AXES_MAX];
    int64_t groups;  /* of channels with offsets of their own */
    int64_t window;  /* elements of the kernel */
    int64_t outputs; /* elements of an output's channel */
};

static bool describe_deformed(const struct sampler *s, const struct wpk_graph_value *w,
                              const struct wpk_graph_value *offset, struct deformed *out)
{
    int64_t pads[2 * AXES_MAX];
    bool fits = w->rank == s->rank + 2 && offset->rank == w->rank &&
                wpk_expansion_list(s->e, "strides", s->rank, 1, out->stride) &&
                wpk_expansion_list(s->e, "dilations", s->rank, 1, out->dilation) &&
                wpk_expansion_list(s->e, "pads", 2 * s->rank, 0, pads);

    for (int j = 0; fits && j < s->rank; j++) {
        out->kernel[j] = w->extent[j + 2];
        out->pad[j] = pads[j];
        int64_t span =
            s->size[j] + pads[j] + pads[s->rank + j] - out->dilation[j] * (out->kernel[j] - 1) - 1;
        out->out[j] = span / out->stride[j] + 1;
        fits = span >= 0 && out->out[j] == offset->extent[j + 2];
    }
    out->window = fits ? wpk_extents_product(out->kernel, s->rank) : 0;
    out->outputs = fits ? wpk_extents_product(out->out, s->rank) : 0;
    return fits && offset->extent[1] == out->groups * out->window * s->rank;
}

/* The places along an axis; `offset` is [lists, window, axes, outputs]. */
static int add_offset(const struct sampler *s, const struct deformed *d, int offset, int axis)
{
    int after = s->rank - 1 - axis;

    wpk_buf_printf(&s->e->text,
                   "Y[d0,d1] = %s(%lld*(d1%%%lld/%lld%%%lld)+%lld*(d1/%lld%%%lld)-"
                   "%lld) + X[d0,d1/%lld,%d,d1%%%lld]",
                   wpk_dtype_name(s->dtype), (long long)d->stride[axis], (long long)d->outputs,
                   (long long)wpk_extents_product(d->out + axis + 1, after),
                   (long long)d->out[axis], (long long)d->dilation[axis],
                   (long long)(d->outputs * wpk_extents_product(d->kernel + axis + 1, after)),
                   (long long)d->kernel[axis], (long long)d->pad[axis], (long long)d->outputs, axis,
                   (long long)d->outputs);
    return wpk_expansion_equation(s->e, &offset, 1, s->dtype, 2, (int64_t[]){s->lists, s->points},
                                  -1);
}

/* Add the sampled inputs that the kernel is multiplied by, [batch, channels, window, outputs]. */
static int add_columns(const struct sampler *s, const struct deformed *d, int64_t batch,
                       int64_t channels, int mask)
{
    struct wpk_buf *text = &s->e->text;
    long long groups = (long long)d->groups, each = (long long)(channels / d->groups);
    long long outputs = (long long)d->outputs;
    const int64_t extent[] = {batch, channels, d->window, d->outputs};

    wpk_buf_printf(text,
                   "Y[d0,d1,d2,d3] = (sum(t:%lld) X[%lld*d0+d1/%lld,%lld*d2+d3,t,d1%%%lld] * "
                   "X1[%lld*d0+d1/%lld,%lld*d2+d3,t])",
                   (long long)taps_of(s, s->rank), groups, each, outputs, each, groups, each,
                   outputs);
    if (mask >= 0) {
        wpk_buf_printf(text, " * X2[d0,%lld*(d1/%lld)+d2,d3]", (long long)d->window, each);
    }
    return wpk_expansion_equation(s->e, (int[]){s->elements, s->weights, mask}, mask >= 0 ? 3 : 2,
                                  s->dtype, 4, extent, -1);
}

/* The sum over the channels of a group and the window, [batch, filters, outputs]. */
static int add_product(const struct sampler *s, const struct deformed *d, int columns, int weights,
                       const int64_t *extent, int64_t channels)
{
    const int64_t filters = extent[1];
    int bias = s->e->node->input_count > 3 ? s->e->node->inputs[3] : -1;
    long long group = (long long)(filters / wpk_graph_int(s->e->node, "group", 1));
    int flat = wpk_compose_reshape(&s->e->to, weights, "", 3,
                                   (int64_t[]){filters, channels, d->window}, -1);

    wpk_buf_printf(&s->e->text,
                   "Y[d0,d1,d2] = (sum(c:%lld,k:%lld) X[d0,%lld*(d1/%lld)+c,k,d2] * X1[d1,c,k])%s",
                   (long long)channels, (long long)d->window, (long long)channels, group,
                   bias >= 0 ? " + X2[d1]" : "");
    return wpk_expansion_equation(s->e, (int[]){columns, flat, bias}, bias >= 0 ? 3 : 2, s->dtype,
                                  3, extent, -1);
}

wpk_err wpk_expand_deform_conv(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0), w = wpk_expansion_input(e, 1);
    const struct wpk_graph_value offset = wpk_expansion_input(e, 2);
    const struct wpk_graph_value bias = wpk_expansion_input(e, 3);
    const struct wpk_graph_value mask = wpk_expansion_input(e, 4);
    int64_t group = wpk_graph_int(e->node, "group", 1);
    struct sampler s = {.e = e, .mode = LINEAR, .border = ZEROS, .is_aligned = true};
    struct deformed d = {.groups = wpk_graph_int(e->node, "offset_group", 1)};

    bool fits =
        take_axes(&s, &x) && d.groups >= 1 && x.extent[1] % d.groups == 0 && w.dtype == x.dtype &&
        offset.dtype == x.dtype && offset.extent[0] == x.extent[0] &&
        describe_deformed(&s, &w, &offset, &d) && group >= 1 && w.extent[0] % group == 0 &&
        w.extent[1] * group == x.extent[1] &&
        (bias.rank < 0 || (bias.rank == 1 && bias.extent[0] == w.extent[0])) &&
        (mask.rank < 0 || (mask.rank == x.rank && mask.extent[0] == x.extent[0] &&
                           mask.extent[1] == d.groups * d.window &&
                           memcmp(mask.extent + 2, d.out, (size_t)s.rank * sizeof(int64_t)) == 0));
    if (!fits) {
        return wpk_expansion_refuse(e, "its inputs or attributes do not fit each other");
    }
    int64_t image[WPK_RANK_MAX] = {x.extent[0] * d.groups, x.extent[1] / d.groups};
    int64_t extent[WPK_RANK_MAX] = {x.extent[0], w.extent[0], d.outputs};
    memcpy(image + 2, s.size, sizeof(s.size));
    s.lists = image[0];
    s.points = d.window * d.outputs;
    int flat = wpk_compose_reshape(&e->to, e->node->inputs[2], "", 4,
                                   (int64_t[]){s.lists, d.window, s.rank, d.outputs}, -1);
    for (int j = 0; j < s.rank; j++) {
        s.place[j] = add_offset(&s, &d, flat, j);
    }
    int parts = wpk_compose_reshape(&e->to, e->node->inputs[0], "", x.rank, image, -1);
    sample(&s, parts, image[0], image[1]);
    int flat_mask =
        mask.rank < 0
            ? -1
            : wpk_compose_reshape(&e->to, e->node->inputs[4], "", 3,
                                  (int64_t[]){x.extent[0], d.groups * d.window, d.outputs}, -1);
    int columns = add_columns(&s, &d, x.extent[0], x.extent[1], flat_mask);
    int product = add_product(&s, &d, columns, e->node->inputs[1], extent, w.extent[1]);
    memcpy(extent + 2, d.out, sizeof(d.out));
    (void)wpk_compose_reshape(&e->to, product, e->node->name, x.rank, extent,
                              wpk_expansion_output(e, 0));
    return WPK_OK;
}
