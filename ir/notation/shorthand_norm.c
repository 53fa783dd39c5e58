/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that reduce along axes and mostly divide by the result: softmax, layernorm, reduce. */
#include "ir/notation/shorthand_read.h"

#include <inttypes.h>
#include <string.h>

/* "(a1,a3)": the axes that `keep` does not mark. */
static void print_reduced(struct wpk_shorthand *s, int rank, const bool *keep)
{
    const char *separator = "(";
    for (int d = 0; d < rank; d++) {
        if (!keep[d]) {
            wpk_buf_printf(&s->text, "%s%s", separator, wpk_shorthand_axes[d]);
            separator = ",";
        }
    }
    wpk_buf_append_text(&s->text, ") ");
}

/* Each part its own stage, so that the exponentials are computed once; the largest element is taken
 * off first, so that none of them overflows. */
static void expand_softmax(struct wpk_shorthand *s, const char *name)
{
    bool keep[WPK_RANK_MAX];
    (void)name;
    wpk_shorthand_dtypes(s, false);
    wpk_shorthand_need_float(s);
    struct wpk_shape shape = wpk_shorthand_shape(s, "shape", 1, WPK_RANK_MAX);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    int axis = wpk_shorthand_axis(s, "axis", shape.rank, -1);
    int rank = shape.rank;
    for (int d = 0; d < WPK_RANK_MAX; d++) {
        keep[d] = d != axis;
    }
    wpk_shorthand_declare(s, "X", s->dtype, &shape, false);
    wpk_shorthand_declare_output(s, &shape);
    const struct {
        const char *text; /* or the name of a tensor: over all axes, or those kept */
        enum { TEXT, WHOLE, KEPT, REDUCED } kind;
    } parts[] = {
        {"Y", WHOLE},      {" = ", TEXT}, {"E", WHOLE},      {" / ", TEXT},    {"D", KEPT},
        {" where ", TEXT}, {"M", KEPT},   {" = max", TEXT},  {"", REDUCED},    {"X", WHOLE},
        {"; ", TEXT},      {"E", WHOLE},  {" = exp(", TEXT}, {"X", WHOLE},     {" - ", TEXT},
        {"M", KEPT},       {"); ", TEXT}, {"D", KEPT},       {" = sum", TEXT}, {"", REDUCED},
        {"E", WHOLE},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].kind == TEXT) {
            wpk_buf_append_text(&s->text, parts[i].text);
        } else if (parts[i].kind == REDUCED) {
            print_reduced(s, rank, keep);
        } else {
            wpk_shorthand_print_tensor(s, parts[i].text, rank, parts[i].kind == KEPT ? keep : NULL);
        }
    }
}

/* ---- layernorm */

struct layernorm {
    struct wpk_shape shape;
    int first;    /* normalised are the axes from here on */
    int64_t size; /* elements of one group */
    bool keep[WPK_RANK_MAX];
    bool normalised[WPK_RANK_MAX];
    double epsilon;
};

static void print_centred(struct wpk_shorthand *s, const struct layernorm *l)
{
    wpk_buf_append_text(&s->text, "(");
    wpk_shorthand_print_tensor(s, "X", l->shape.rank, NULL);
    wpk_buf_append_text(&s->text, " - ");
    wpk_shorthand_print_tensor(s, "M", l->shape.rank, l->keep);
    wpk_buf_append_text(&s->text, ")");
}

/* M: means; R: reciprocals of the deviations, in two passes, which does not cancel as
 * E[x^2] - E[x]^2 does. */
static void write_moments(struct wpk_shorthand *s, const struct layernorm *l)
{
    wpk_buf_append_text(&s->text, " where ");
    wpk_shorthand_print_tensor(s, "M", l->shape.rank, l->keep);
    wpk_buf_append_text(&s->text, " = (sum");
    print_reduced(s, l->shape.rank, l->keep);
    wpk_shorthand_print_tensor(s, "X", l->shape.rank, NULL);
    wpk_buf_printf(&s->text, ") / %" PRId64 "; ", l->size);
    wpk_shorthand_print_tensor(s, "R", l->shape.rank, l->keep);
    wpk_buf_append_text(&s->text, " = rsqrt((sum");
    print_reduced(s, l->shape.rank, l->keep);
    print_centred(s, l);
    wpk_buf_append_text(&s->text, " * ");
    print_centred(s, l);
    wpk_buf_printf(&s->text, ") / %" PRId64 " + %.17g)", l->size, l->epsilon);
}

static void read_layernorm(struct wpk_shorthand *s, struct layernorm *l)
{
    *l = (struct layernorm){.size = 1};
    l->shape = wpk_shorthand_shape(s, "shape", 1, WPK_RANK_MAX);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    l->first = wpk_shorthand_axis(s, "axis", l->shape.rank, -1);
    l->epsilon = wpk_shorthand_real(s, "eps", 0, 1, 1e-5);
    for (int d = 0; d < l->shape.rank; d++) {
        l->keep[d] = d < l->first;
        l->normalised[d] = d >= l->first;
        l->size *= d >= l->first ? l->shape.extent[d] : 1;
    }
}

static void expand_layernorm(struct wpk_shorthand *s, const char *name)
{
    struct layernorm l;
    (void)name;
    wpk_shorthand_dtypes(s, false);
    wpk_shorthand_need_float(s);
    read_layernorm(s, &l);
    bool scale = wpk_shorthand_flag(s, "scale", true);
    bool bias = wpk_shorthand_flag(s, "bias", true);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    struct wpk_shape group = {.rank = l.shape.rank - l.first};
    memcpy(group.extent, l.shape.extent + l.first, (size_t)group.rank * sizeof *group.extent);
    wpk_shorthand_declare(s, "X", s->dtype, &l.shape, false);
    if (scale) {
        wpk_shorthand_declare(s, "S", s->dtype, &group, true);
    }
    if (bias) {
        wpk_shorthand_declare(s, "B", s->dtype, &group, true);
    }
    wpk_shorthand_declare_output(s, &l.shape);
    wpk_shorthand_print_tensor(s, "Y", l.shape.rank, NULL);
    wpk_buf_append_text(&s->text, " = ");
    print_centred(s, &l);
    wpk_buf_append_text(&s->text, " * ");
    wpk_shorthand_print_tensor(s, "R", l.shape.rank, l.keep);
    if (scale) {
        wpk_buf_append_text(&s->text, " * ");
        wpk_shorthand_print_tensor(s, "S", l.shape.rank, l.normalised);
    }
    if (bias) {
        wpk_buf_append_text(&s->text, " + ");
        wpk_shorthand_print_tensor(s, "B", l.shape.rank, l.normalised);
    }
    write_moments(s, &l);
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

static void expand_reduce(struct wpk_shorthand *s, const char *name)
{
    static const char *const reductions[] = {"sum", "mean", "max", "min", "prod"};
    bool keep[WPK_RANK_MAX];
    (void)name;
    wpk_shorthand_dtypes(s, false);
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
    print_reduced(s, shape.rank, keep);
    wpk_shorthand_print_tensor(s, "X", shape.rank, NULL);
    wpk_buf_append_text(&s->text, ")");
    if (mean) {
        wpk_buf_printf(&s->text, " / %" PRId64, size);
    }
}

static const char *const softmax_fields[] = {"type",  "shape",        "axis",
                                             "dtype", "output_dtype", NULL};
static const char *const layernorm_fields[] = {"type", "shape", "axis",         "eps", "scale",
                                               "bias", "dtype", "output_dtype", NULL};
static const char *const reduce_fields[] = {"type",      "shape", "axes",         "reduction",
                                            "keep_dims", "dtype", "output_dtype", NULL};

const struct wpk_shorthand_type wpk_shorthand_norm_types[] = {
    {"softmax", softmax_fields, expand_softmax},
    {"layernorm", layernorm_fields, expand_layernorm},
    {"reduce", reduce_fields, expand_reduce},
    {NULL, NULL, NULL},
};
