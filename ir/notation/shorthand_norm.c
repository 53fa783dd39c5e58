/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that reduce along axes and mostly divide by the result: softmax, layernorm, reduce. */
#include "ir/notation/shorthand_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Each part its own stage, so that the exponentials are computed once; the largest element is taken
 * off first, so that none of them overflows. */
static void expand_softmax(struct wpk_shorthand *s)
{
    bool keep[WPK_RANK_MAX];
    struct wpk_shape shape = wpk_shorthand_shape(s, "shape", 1, WPK_RANK_MAX);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    int axis = wpk_shorthand_axis(s, "axis", shape.rank, -1);
    for (int d = 0; d < WPK_RANK_MAX; d++) {
        keep[d] = d != axis;
    }
    wpk_shorthand_declare(s, "X", s->dtype, &shape, false);
    wpk_shorthand_declare_output(s, &shape);
    wpk_shorthand_print(s, shape.rank, keep,
                        "Y[*] = E[*] / D[k] where M[k] = max(r) X[*]; E[*] = exp(X[*] - M[k]); "
                        "D[k] = sum(r) E[*]");
}

/* M: means; R: reciprocals of the deviations, in two passes, which does not cancel as
 * E[x^2] - E[x]^2 does. */
static void expand_layernorm(struct wpk_shorthand *s)
{
    bool keep[WPK_RANK_MAX];
    char moments[256];
    struct wpk_shape shape = wpk_shorthand_shape(s, "shape", 1, WPK_RANK_MAX);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    const int first = wpk_shorthand_axis(s, "axis", shape.rank, -1);
    const double epsilon = wpk_shorthand_real(s, "eps", 0, 1, 1e-5);
    const bool scale = wpk_shorthand_flag(s, "scale", true);
    const bool bias = wpk_shorthand_flag(s, "bias", true);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    struct wpk_shape group = {.rank = shape.rank - first};
    int64_t size = 1;
    for (int d = 0; d < shape.rank; d++) {
        keep[d] = d < first;
        size *= keep[d] ? 1 : shape.extent[d];
    }
    memcpy(group.extent, shape.extent + first, (size_t)group.rank * sizeof *group.extent);
    wpk_shorthand_declare(s, "X", s->dtype, &shape, false);
    if (scale) {
        wpk_shorthand_declare(s, "S", s->dtype, &group, true);
    }
    if (bias) {
        wpk_shorthand_declare(s, "B", s->dtype, &group, true);
    }
    wpk_shorthand_declare_output(s, &shape);
    wpk_shorthand_print(s, shape.rank, keep, "Y[*] = (X[*] - M[k]) * R[k]");
    wpk_shorthand_print(s, shape.rank, keep, scale ? " * S[r]" : "");
    wpk_shorthand_print(s, shape.rank, keep, bias ? " + B[r]" : "");
    snprintf(moments, sizeof moments,
             " where M[k] = (sum(r) X[*]) / %" PRId64
             "; R[k] = rsqrt((sum(r) (X[*] - M[k]) * (X[*] - M[k])) / %" PRId64 " + %.17g)",
             size, size, epsilon);
    wpk_shorthand_print(s, shape.rank, keep, moments);
}

/* ---- reduce */

/* False in `keep` for each axis named; the product of their extents. */
static int64_t read_axes(struct wpk_shorthand *s, const struct wpk_shape *shape, bool *keep)
{
    int64_t axes[WPK_RANK_MAX];
    int64_t size = 1;
    for (int d = 0; d < shape->rank; d++) {
        keep[d] = true;
    }
    size_t count = wpk_json_get_ints(s->reader, "axes", -shape->rank, shape->rank - 1, axes,
                                     (size_t)shape->rank);
    if (!wpk_shorthand_failed(s) && count == 0) {
        wpk_json_fail(s->reader, "axes", WPK_EINVAL, "at least one axis is reduced");
    }
    for (size_t i = 0; i < count && !wpk_shorthand_failed(s); i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + shape->rank : axes[i];
        if (!keep[axis]) {
            wpk_json_fail(s->reader, "axes", WPK_EINVAL, "axis %" PRId64 " is named twice", axis);
        }
        keep[axis] = false;
        size *= shape->extent[axis];
    }
    return size;
}

/* Reduced axes are dropped, or stay with extent 1 as u0 … */
static void print_reduce_output(struct wpk_shorthand *s, const struct wpk_shape *shape,
                                const bool *keep, bool stay)
{
    const char *separator = "";
    struct wpk_shape output = {0};
    wpk_buf_append_text(&s->text, "Y[");
    for (int d = 0; d < shape->rank; d++) {
        if (keep[d] || stay) {
            wpk_buf_printf(&s->text, keep[d] ? "%s%s" : "%sunit_%s", separator,
                           wpk_shorthand_axes[d]);
            output.extent[output.rank++] = keep[d] ? shape->extent[d] : 1;
            separator = ",";
        }
    }
    wpk_buf_append_text(&s->text, "] = ");
    wpk_shorthand_declare_output(s, &output);
}

static void expand_reduce(struct wpk_shorthand *s)
{
    static const char *const reductions[] = {"sum", "mean", "max", "min", "prod"};
    bool keep[WPK_RANK_MAX];
    struct wpk_shape shape = wpk_shorthand_shape(s, "shape", 1, WPK_RANK_MAX);
    const char *reduction = reductions[wpk_json_get_choice(s->reader, "reduction", reductions, 5)];
    bool mean = strcmp(reduction, "mean") == 0;
    if (mean) {
        wpk_shorthand_need_float(s);
    }
    bool stay = wpk_shorthand_flag(s, "keep_dims", false);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    int64_t size = read_axes(s, &shape, keep);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    wpk_shorthand_declare(s, "X", s->dtype, &shape, false);
    print_reduce_output(s, &shape, keep, stay);
    wpk_buf_printf(&s->text, "(%s", mean ? "sum" : reduction);
    wpk_shorthand_print(s, shape.rank, keep, "(r) X[*])");
    if (mean) {
        wpk_buf_printf(&s->text, " / %" PRId64, size);
    }
}

static const char softmax_fields[] = "shape axis dtype output_dtype";
static const char layernorm_fields[] = "shape axis eps scale bias dtype output_dtype";
static const char reduce_fields[] = "shape axes reduction keep_dims dtype output_dtype";

const struct wpk_shorthand_type wpk_shorthand_norm_types[] = {
    {"softmax", softmax_fields, expand_softmax, WPK_SHORTHAND_FLOAT},
    {"layernorm", layernorm_fields, expand_layernorm, WPK_SHORTHAND_FLOAT},
    {"reduce", reduce_fields, expand_reduce, WPK_SHORTHAND_ANY},
    {.name = NULL},
};
