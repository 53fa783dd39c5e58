/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, and the window that they share with pooling. */
#include "ir/notation/shorthand_read.h"

#include <inttypes.h>

static int64_t window_size(const struct wpk_window *w, int d)
{
    return w->dilation[d] * (w->kernel[d] - 1) + 1;
}

void wpk_shorthand_window(struct wpk_shorthand *s, bool stride_is_kernel, struct wpk_window *out)
{
    static const int64_t ones[2] = {1, 1};
    static const int64_t zeros[4] = {0};
    *out = (struct wpk_window){.input = wpk_shorthand_shape(s, "input", 4, 4)};
    wpk_shorthand_steps(s, "kernel", 1, NULL, 2, out->kernel);
    wpk_shorthand_steps(s, "stride", 1, stride_is_kernel ? out->kernel : ones, 2, out->stride);
    wpk_shorthand_steps(s, "padding", 0, zeros, 4, out->padding);
    wpk_shorthand_steps(s, "dilation", 1, ones, 2, out->dilation);
    for (int d = 0; d < 2 && !wpk_shorthand_failed(s); d++) {
        int64_t padded = out->padding[d] + out->input.extent[2 + d] + out->padding[2 + d];
        int64_t room = padded - window_size(out, d);
        if (room < 0) {
            wpk_json_fail(s->reader, "kernel", WPK_ERANGE,
                          "a window of %" PRId64 " does not fit into %" PRId64 " padded elements",
                          window_size(out, d), padded);
            return;
        }
        out->output[d] = room / out->stride[d] + 1;
    }
}

static void print_position(struct wpk_shorthand *s, const struct wpk_window *w, int d)
{
    static const char *const moving[2] = {"y", "x"};
    static const char *const tap[2] = {"r", "s"};
    if (w->stride[d] != 1) {
        wpk_buf_printf(&s->text, "%" PRId64 "*", w->stride[d]);
    }
    wpk_buf_printf(&s->text, "%s+", moving[d]);
    if (w->dilation[d] != 1) {
        wpk_buf_printf(&s->text, "%" PRId64 "*", w->dilation[d]);
    }
    wpk_buf_append_text(&s->text, tap[d]);
    if (w->padding[d] != 0) {
        wpk_buf_printf(&s->text, "-%" PRId64, w->padding[d]);
    }
}

void wpk_shorthand_print_window(struct wpk_shorthand *s, const struct wpk_window *window)
{
    print_position(s, window, 0);
    wpk_buf_append_text(&s->text, ",");
    print_position(s, window, 1);
}

/* Which input channel filter k reads at step c: a group has `inputs` channels and `filters`
 * filters. A group of one channel, as in a depthwise convolution, needs no step. */
static void print_channel(struct wpk_shorthand *s, int64_t groups, int64_t inputs, int64_t filters)
{
    if (groups == 1) {
        wpk_buf_append_text(&s->text, "c");
    } else if (inputs == 1 && filters == 1) {
        wpk_buf_append_text(&s->text, "k");
    } else if (inputs == 1) {
        wpk_buf_printf(&s->text, "k/%" PRId64, filters);
    } else {
        wpk_buf_printf(&s->text, "k/%" PRId64 "*%" PRId64 "+c", filters, inputs);
    }
}

static void write_conv(struct wpk_shorthand *s, const struct wpk_window *w, int64_t filters,
                       int64_t groups)
{
    int64_t inputs = w->input.extent[1] / groups;
    bool bias = wpk_shorthand_flag(s, "bias", false);
    bool stepless = groups > 1 && inputs == 1;
    struct wpk_activation activation = wpk_shorthand_activation(s);
    struct wpk_shape weights = {4, {filters, inputs, w->kernel[0], w->kernel[1]}};
    struct wpk_shape output = {4, {w->input.extent[0], filters, w->output[0], w->output[1]}};
    wpk_shorthand_declare(s, "X", s->dtype, &w->input, false);
    wpk_shorthand_declare(s, "W", s->dtype, &weights, true);
    if (bias) {
        wpk_shorthand_declare(s, "B", s->output_dtype, &(struct wpk_shape){1, {filters}}, true);
    }
    wpk_shorthand_declare_output(s, &output);
    wpk_buf_printf(&s->text, "Y[n,k,y,x] = %ssum(%sr,s) X[n,", activation.begin,
                   stepless ? "" : "c,");
    print_channel(s, groups, inputs, filters / groups);
    wpk_buf_append_text(&s->text, ",");
    wpk_shorthand_print_window(s, w);
    wpk_buf_printf(&s->text, "] * W[k,%s,r,s]%s%s", stepless ? "0" : "c", bias ? " + B[k]" : "",
                   activation.end);
}

static void expand_conv(struct wpk_shorthand *s)
{
    struct wpk_window window;
    wpk_shorthand_window(s, false, &window);
    int64_t filters = wpk_json_get_int(s->reader, "filters", 1, WPK_ELEMENTS_MAX);
    int64_t groups = 1;
    if (wpk_json_has(s->reader, "groups")) {
        groups = wpk_json_get_int(s->reader, "groups", 1, WPK_ELEMENTS_MAX);
    }
    if (wpk_shorthand_failed(s)) {
        return;
    }
    if (window.input.extent[1] % groups != 0 || filters % groups != 0) {
        wpk_json_fail(s->reader, "groups", WPK_EINVAL,
                      "%" PRId64 " groups divide neither %" PRId64 " channels nor %" PRId64
                      " filters evenly",
                      groups, window.input.extent[1], filters);
        return;
    }
    write_conv(s, &window, filters, groups);
}

static void expand_depthwise(struct wpk_shorthand *s)
{
    struct wpk_window window;
    int64_t multiplier = 1;
    wpk_shorthand_window(s, false, &window);
    if (wpk_json_has(s->reader, "multiplier")) {
        multiplier = wpk_json_get_int(s->reader, "multiplier", 1, WPK_SHORTHAND_STEP_MAX);
    }
    if (!wpk_shorthand_failed(s)) {
        int64_t channels = window.input.extent[1];
        write_conv(s, &window, channels * multiplier, channels);
    }
}

static const char conv_fields[] =
    "input filters kernel stride padding dilation groups bias activation dtype output_dtype";
static const char depthwise_fields[] =
    "input kernel stride padding dilation multiplier bias activation dtype output_dtype";

const struct wpk_shorthand_type wpk_shorthand_conv_types[] = {
    {"conv2d", conv_fields, expand_conv, WPK_SHORTHAND_WIDENED},
    {"depthwise_conv2d", depthwise_fields, expand_depthwise, WPK_SHORTHAND_WIDENED},
    {.name = NULL},
};
