/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling over the last two axes of [N, C, H, W]. */
#include "ir/notation/shorthand_read.h"

#include "ir/node.h"

#include <inttypes.h>

/* A window that lies in the border alone would have no value. */
static void check_border(struct wpk_shorthand *s, const struct wpk_window *w)
{
    for (int side = 0; side < 4 && !wpk_shorthand_failed(s); side++) {
        int64_t reach = w->dilation[side % 2] * (w->kernel[side % 2] - 1);
        if (w->padding[side] > reach) {
            wpk_json_fail(s->reader, "padding", WPK_ERANGE,
                          "a border of %" PRId64 " can hold a whole window", w->padding[side]);
        }
    }
}

static void declare(struct wpk_shorthand *s, const struct wpk_window *w)
{
    struct wpk_shape output = {
        4, {w->input.extent[0], w->input.extent[1], w->output[0], w->output[1]}};
    wpk_shorthand_declare(s, "X", s->dtype, &w->input, false);
    wpk_shorthand_declare_output(s, &output);
}

static void expand_max(struct wpk_shorthand *s)
{
    struct wpk_window window;
    wpk_shorthand_window(s, true, &window);
    check_border(s, &window);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    declare(s, &window);
    wpk_buf_printf(&s->text, "Y[n,c,y,x] = max(r:%" PRId64 ",s:%" PRId64 ") X[n,c,",
                   window.kernel[0], window.kernel[1]);
    wpk_shorthand_print_window(s, &window);
    if (wpk_dtype_is_float(s->dtype)) {
        wpk_buf_append_text(&s->text, " | -inf]");
    } else {
        int64_t low, high;
        wpk_dtype_integer_range(s->dtype, &low, &high);
        wpk_buf_printf(&s->text, " | %" PRId64 "]", low);
    }
}

/* How many taps of the window lie inside along one axis, as a function of its position. */
static void print_count(struct wpk_shorthand *s, const struct wpk_window *w, int d, bool inside)
{
    int64_t extent = w->input.extent[2 + d];
    if (!inside || (w->padding[d] == 0 && w->padding[2 + d] == 0)) {
        wpk_buf_printf(&s->text, "%" PRId64, w->kernel[d]);
        return;
    }
    const char *axis = d == 0 ? "y" : "x";
    wpk_buf_printf(&s->text,
                   "(min(%" PRId64 "*%s+%" PRId64 ", %" PRId64 ") - max(%" PRId64 "*%s-%" PRId64
                   ", 0))",
                   w->stride[d], axis, w->kernel[d] - w->padding[d], extent, w->stride[d], axis,
                   w->padding[d]);
}

static void expand_avg(struct wpk_shorthand *s)
{
    struct wpk_window window;
    wpk_shorthand_window(s, true, &window);
    check_border(s, &window);
    bool inside = !wpk_shorthand_flag(s, "count_include_pad", false);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    declare(s, &window);
    wpk_buf_printf(&s->text, "Y[n,c,y,x] = (sum(r:%" PRId64 ",s:%" PRId64 ") X[n,c,",
                   window.kernel[0], window.kernel[1]);
    wpk_shorthand_print_window(s, &window);
    wpk_buf_append_text(&s->text, "]) / (");
    print_count(s, &window, 0, inside);
    wpk_buf_append_text(&s->text, " * ");
    print_count(s, &window, 1, inside);
    wpk_buf_append_text(&s->text, ")");
}

static void expand_global_avg(struct wpk_shorthand *s)
{
    struct wpk_shape input = wpk_shorthand_shape(s, "input", 4, 4);
    struct wpk_shape output = {4, {input.extent[0], input.extent[1], 1, 1}};
    wpk_shorthand_declare(s, "X", s->dtype, &input, false);
    wpk_shorthand_declare_output(s, &output);
    wpk_buf_printf(&s->text, "Y[n,c,y,x] = (sum(h,w) X[n,c,h,w]) / %" PRId64,
                   input.extent[2] * input.extent[3]);
}

static const char max_fields[] = "input kernel stride padding dilation dtype output_dtype";
static const char avg_fields[] = "input kernel stride padding count_include_pad dtype output_dtype";
static const char global_fields[] = "input dtype output_dtype";

const struct wpk_shorthand_type wpk_shorthand_pool_types[] = {
    {"max_pool2d", max_fields, expand_max, WPK_SHORTHAND_ANY},
    {"avg_pool2d", avg_fields, expand_avg, WPK_SHORTHAND_FLOAT},
    {"global_avg_pool", global_fields, expand_global_avg, WPK_SHORTHAND_FLOAT},
    {.name = NULL},
};
