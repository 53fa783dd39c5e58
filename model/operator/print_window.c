/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, pools and products. */
#include "model/operator/operator_forms.h"

#include "model/operator/inference.h"

/* "2*d2+r0-1": where window d2 reads its element r0. */
static void print_position(struct wpk_buf *text, const struct wpk_graph_window *w, int d)
{
    if (w->stride[d] != 1) {
        wpk_buf_printf(text, "%lld*", (long long)w->stride[d]);
    }
    wpk_buf_printf(text, "d%d", d + 2);
    if (w->kernel[d] > 1 && w->dilation[d] > 1) {
        wpk_buf_printf(text, "+%lld*r%d", (long long)w->dilation[d], d);
    } else if (w->kernel[d] > 1) {
        wpk_buf_printf(text, "+r%d", d);
    }
    if (w->before[d] > 0) {
        wpk_buf_printf(text, "-%lld", (long long)w->before[d]);
    } else if (w->kernel[d] == 1 && w->after[d] > 0) {
        wpk_buf_append_text(text, "+0"); /* the axis is longer than the input's */
    }
}

/* "r0:3,r1:3" for all extents that are not 1. Returns false if there is none. */
static bool print_kernel_axes(struct wpk_buf *text, const struct wpk_graph_window *w,
                              const char *comma)
{
    bool any = false;

    for (int d = 0; d < w->rank; d++) {
        if (w->kernel[d] > 1) {
            wpk_buf_printf(text, "%sr%d:%lld", comma, d, (long long)w->kernel[d]);
            comma = ",";
            any = true;
        }
    }
    return any;
}

static void print_positions(struct wpk_buf *text, const struct wpk_graph_window *w)
{
    for (int d = 0; d < w->rank; d++) {
        wpk_buf_append_text(text, ",");
        print_position(text, w, d);
    }
}

/* The channel that filter d1 reads: of its own group, unless there is one alone. */
static void print_channel(struct wpk_buf *text, int64_t group, int64_t filters, int64_t channels)
{
    if (group == 1) {
        wpk_buf_append_text(text, channels > 1 ? "c" : "0");
    } else if (channels == 1 && filters == group) {
        wpk_buf_append_text(text, "d1");
    } else if (channels == 1) {
        wpk_buf_printf(text, "d1/%lld", (long long)(filters / group));
    } else if (filters == group) {
        wpk_buf_printf(text, "%lld*d1+c", (long long)channels);
    } else {
        wpk_buf_printf(text, "%lld*(d1/%lld)+c", (long long)channels, (long long)(filters / group));
    }
}

static void print_bias(struct wpk_printer *printer)
{
    wpk_buf_append_text(printer->text, printer->input[2] != NULL ? " + X2[d1]" : "");
}

wpk_err wpk_print_conv(struct wpk_printer *printer)
{
    const struct wpk_graph_value *weights = printer->input[1];
    struct wpk_graph_window w;
    struct wpk_buf *text = printer->text;
    int64_t channels = weights->extent[1];
    int64_t outside = wpk_graph_int(printer->node, "outside", 0);
    bool is_one = channels == 1;

    wpk_err err =
        wpk_graph_window(printer->graph, printer->node, weights->extent + 2, &w, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    for (int d = 0; d < w.rank; d++) {
        is_one = is_one && w.kernel[d] == 1;
    }
    wpk_printer_output(printer);
    if (!is_one) {
        wpk_buf_append_text(text, "sum(");
        if (channels > 1) {
            wpk_buf_printf(text, "c:%lld", (long long)channels);
        }
        print_kernel_axes(text, &w, channels > 1 ? "," : "");
        wpk_buf_append_text(text, ") ");
    }
    wpk_printer_factor(printer, 0);
    wpk_buf_append_text(text, "[d0,");
    print_channel(text, wpk_graph_int(printer->node, "group", 1), weights->extent[0], channels);
    print_positions(text, &w);
    if (outside != 0) {
        wpk_buf_printf(text, " | %lld", (long long)outside);
    }
    wpk_buf_append_text(text, "]");
    wpk_printer_end_factor(printer, 0);
    wpk_buf_append_text(text, " * ");
    wpk_printer_factor(printer, 1);
    wpk_buf_append_text(text, channels > 1 ? "[d1,c" : "[d1,0");
    for (int d = 0; d < w.rank; d++) {
        wpk_buf_printf(text, w.kernel[d] > 1 ? ",r%d" : ",0", d);
    }
    wpk_buf_append_text(text, "]");
    wpk_printer_end_factor(printer, 1);
    print_bias(printer);
    return WPK_OK;
}

/* Whether an element of the output meets element r0 of the window, for all axes with a stride. */
static void print_meets(struct wpk_buf *text, const struct wpk_graph_window *w)
{
    const char *both = "";

    for (int d = 0; d < w->rank; d++) {
        if (w->stride[d] > 1) {
            wpk_buf_printf(text, "%s(d%d+%lld-%lld*%s%d)%%%lld == 0", both, d + 2,
                           (long long)w->before[d], (long long)w->dilation[d], "r", d,
                           (long long)w->stride[d]);
            both = " && ";
        }
    }
}

static void print_data_channel(struct wpk_printer *printer, int64_t group)
{
    const struct wpk_graph_value *weights = printer->input[1];

    if (group == 1) {
        wpk_buf_append_text(printer->text, "X[d0,c");
    } else {
        wpk_buf_printf(printer->text, "X[d0,%lld*(d1/%lld)+c",
                       (long long)(weights->extent[0] / group), (long long)weights->extent[1]);
    }
}

static void print_transposed_load(struct wpk_printer *printer, const struct wpk_graph_window *w,
                                  int64_t group)
{
    struct wpk_buf *text = printer->text;

    print_data_channel(printer, group);
    for (int d = 0; d < w->rank; d++) {
        wpk_buf_printf(text, w->stride[d] > 1 ? ",(d%d+%lld-%lld*r%d)/%lld" : ",d%d+%lld-%lld*r%d",
                       d + 2, (long long)w->before[d], (long long)w->dilation[d], d,
                       (long long)w->stride[d]);
    }
    wpk_buf_append_text(text, "]");
}

static void print_weights(struct wpk_printer *printer, int64_t group)
{
    const struct wpk_graph_value *weights = printer->input[1];

    if (group == 1) {
        wpk_buf_append_text(printer->text, "X1[c,d1");
    } else {
        wpk_buf_printf(printer->text, "X1[%lld*(d1/%lld)+c,d1%%%lld",
                       (long long)(weights->extent[0] / group), (long long)weights->extent[1],
                       (long long)weights->extent[1]);
    }
}

/* A window that is not dilated meets every stride-th element of it: the elements of each phase are
 * a convolution of their own, without a stride. */
static bool has_phases(const struct wpk_graph_window *w)
{
    bool has_stride = false;

    for (int d = 0; d < w->rank; d++) {
        has_stride = has_stride || w->stride[d] > 1;
        if (w->stride[d] > 1 && w->dilation[d] != 1) {
            return false;
        }
    }
    return has_stride && 2 + 2 * w->rank <= WPK_RANK_MAX;
}

/* P[.., p0, p1, m0, m1]: element stride * m + p of an axis, less the padding before. */
static void print_phases(struct wpk_printer *printer, const struct wpk_graph_window *w,
                         int64_t group)
{
    const struct wpk_graph_value *weights = printer->input[1];
    struct wpk_buf *text = printer->text;

    wpk_buf_printf(text, " where P[d0:%lld,d1:%lld", (long long)printer->out->extent[0],
                   (long long)printer->out->extent[1]);
    for (int d = 0; d < w->rank; d++) {
        wpk_buf_printf(text, ",p%d:%lld", d, (long long)w->stride[d]);
    }
    for (int d = 0; d < w->rank; d++) {
        wpk_buf_printf(text, ",m%d:%lld", d,
                       (long long)((w->output[d] + w->before[d] - 1) / w->stride[d] + 1));
    }
    wpk_buf_printf(text, "] = sum(c:%lld", (long long)(weights->extent[0] / group));
    for (int d = 0; d < w->rank; d++) {
        if (w->kernel[d] > w->stride[d]) {
            wpk_buf_printf(text, ",q%d:%lld", d,
                           (long long)((w->kernel[d] + w->stride[d] - 1) / w->stride[d]));
        }
    }
    wpk_buf_append_text(text, ") ");
    print_data_channel(printer, group);
    for (int d = 0; d < w->rank; d++) {
        wpk_buf_printf(text, ",m%d", d);
        if (w->kernel[d] > w->stride[d]) {
            wpk_buf_printf(text, "-%lld*q%d", (long long)w->dilation[d], d);
        } else {
            wpk_buf_append_text(text, "+0"); /* it may run beyond the input */
        }
    }
    wpk_buf_append_text(text, "] * ");
    print_weights(printer, group);
    for (int d = 0; d < w->rank; d++) {
        wpk_buf_printf(text, ",p%d", d);
        if (w->kernel[d] > w->stride[d]) {
            wpk_buf_printf(text, "+%lld*q%d", (long long)w->stride[d], d);
        } else if (w->kernel[d] < w->stride[d]) {
            wpk_buf_append_text(text, "+0"); /* phases without an element of the window */
        }
    }
    wpk_buf_append_text(text, "]");
}

static void print_phase_load(struct wpk_buf *text, const struct wpk_graph_window *w)
{
    static const char operators[] = {'%', '/'};

    wpk_buf_append_text(text, "P[d0,d1");
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < w->rank; d++) {
            wpk_buf_printf(text, ",(d%d+%lld)%c%lld", d + 2, (long long)w->before[d], operators[i],
                           (long long)w->stride[d]);
        }
    }
    wpk_buf_append_text(text, "]");
}

/* Weights are [channels, filters of a group, window...]. */
wpk_err wpk_print_conv_transpose(struct wpk_printer *printer)
{
    const struct wpk_graph_value *weights = printer->input[1];
    struct wpk_buf *text = printer->text;
    struct wpk_graph_window w;
    int64_t group = wpk_graph_int(printer->node, "group", 1);
    bool has_stride = false;

    wpk_err err = wpk_graph_window_transposed(printer->graph, printer->node, weights->extent + 2,
                                              &w, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_printer_output(printer);
    if (has_phases(&w)) {
        print_phase_load(text, &w);
        print_bias(printer);
        print_phases(printer, &w, group);
        return WPK_OK;
    }
    wpk_buf_printf(text, "sum(c:%lld", (long long)(weights->extent[0] / group));
    for (int d = 0; d < w.rank; d++) {
        wpk_buf_printf(text, ",r%d:%lld", d, (long long)w.kernel[d]);
        has_stride = has_stride || w.stride[d] > 1;
    }
    wpk_buf_append_text(text, has_stride ? ") select(" : ") ");
    if (has_stride) {
        print_meets(text, &w);
        wpk_buf_append_text(text, ", ");
    }
    print_transposed_load(printer, &w, group);
    wpk_buf_append_text(text, has_stride ? ", 0) * " : " * ");
    print_weights(printer, group);
    for (int d = 0; d < w.rank; d++) {
        wpk_buf_printf(text, ",r%d", d);
    }
    wpk_buf_append_text(text, "]");
    print_bias(printer);
    return WPK_OK;
}

/* Elements of window d2 inside the input, or inside its padding if that counts. */
static void print_count(struct wpk_buf *text, const struct wpk_graph_window *w, int d,
                        bool counts_padding)
{
    long long begin = counts_padding ? -(long long)w->before[d] : 0;
    long long end = (long long)(w->input[d] + (counts_padding ? w->after[d] : 0));

    if (w->dilation[d] > 1) { /* the last element inside, and how many lie before the first one */
        wpk_buf_printf(text, "(min((%lld-%lld*d%d)/%lld, %lld) + min((%lld*d%d-%lld)/%lld, 0) + 1)",
                       end - 1 + (long long)w->before[d], (long long)w->stride[d], d + 2,
                       (long long)w->dilation[d], (long long)w->kernel[d] - 1,
                       (long long)w->stride[d], d + 2, (long long)w->before[d] + begin,
                       (long long)w->dilation[d]);
        return;
    }
    wpk_buf_printf(text, "(min(%lld*d%d+%lld, %lld) - max(%lld*d%d-%lld, %lld))",
                   (long long)w->stride[d], d + 2, (long long)(w->kernel[d] - w->before[d]), end,
                   (long long)w->stride[d], d + 2, (long long)w->before[d], begin);
}

static bool is_whole(const struct wpk_graph_window *w, int d, bool counts_padding)
{
    int64_t last = (w->output[d] - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] + 1;
    int64_t before = counts_padding ? 0 : w->before[d];

    return before == 0 && last <= w->before[d] + w->input[d] + (counts_padding ? w->after[d] : 0);
}

static void print_average(struct wpk_printer *printer, const struct wpk_graph_window *w)
{
    bool counts_padding = wpk_graph_int(printer->node, "count_include_pad", 0) != 0;
    int64_t fixed = 1;

    wpk_buf_append_text(printer->text, " / (");
    for (int d = 0; d < w->rank; d++) {
        fixed *= is_whole(w, d, counts_padding) ? w->kernel[d] : 1;
    }
    wpk_buf_printf(printer->text, "%lld", (long long)fixed);
    for (int d = 0; d < w->rank; d++) {
        if (!is_whole(w, d, counts_padding)) {
            wpk_buf_printf(printer->text, " * %s", wpk_dtype_name(printer->out->dtype));
            print_count(printer->text, w, d, counts_padding);
        }
    }
    wpk_buf_append_text(printer->text, ")");
}

/* The text of the value outside of the input of a maximum: nothing is less. */
static const char *lowest_of(enum wpk_dtype dtype)
{
    return wpk_dtype_is_float(dtype) ? " | -inf]" : dtype == WPK_U8 ? " | 0]" : " | -128]";
}

static void print_padded(struct wpk_printer *printer, const struct wpk_graph_window *w)
{
    wpk_buf_append_text(printer->text, "X[d0,d1");
    print_positions(printer->text, w);
    wpk_buf_append_text(printer->text, lowest_of(printer->input[0]->dtype));
}

/* The number of the input's element that is the maximum, the first one of several: row by row, or
 * with storage_order 1 column by column. */
static void print_maximum_index(struct wpk_printer *printer, const struct wpk_graph_window *w,
                                const char *axes)
{
    bool by_column = wpk_graph_int(printer->node, "storage_order", 0) != 0;
    struct wpk_buf *text = printer->text;
    int64_t area = 1, stride = 1;

    for (int d = 0; d < w->rank; d++) {
        area *= w->input[d];
    }
    wpk_buf_printf(text, "min(%s) select(", axes);
    print_padded(printer, w);
    wpk_buf_printf(text, " >= M[%s], %lld*(%lld*d0+d1)", wpk_axis_names(printer->out->rank),
                   (long long)area, (long long)printer->input[0]->extent[1]);
    for (int i = 0; i < w->rank; i++) {
        int d = by_column ? i : w->rank - 1 - i;
        wpk_buf_printf(text, "+%lld*(", (long long)stride);
        print_position(text, w, d);
        wpk_buf_append_text(text, ")");
        stride *= w->input[d];
    }
    wpk_buf_printf(text, ", %lld) where M[", (long long)wpk_graph_elements(printer->input[0]));
    for (int d = 0; d < printer->out->rank; d++) {
        wpk_buf_printf(text, "%sd%d:%lld", d > 0 ? "," : "", d, (long long)printer->out->extent[d]);
    }
    wpk_buf_printf(text, "] = max(%s) ", axes);
    print_padded(printer, w);
}

wpk_err wpk_print_pool(struct wpk_printer *printer)
{
    bool is_max = printer->op->kind == WPK_KIND_MAX_POOL;
    struct wpk_graph_window w;
    struct wpk_buf axes = {0};
    struct wpk_buf *text = printer->text;

    wpk_err err = wpk_graph_window(printer->graph, printer->node, NULL, &w, printer->diag);
    enum wpk_dtype dtype = printer->input[0]->dtype;
    if (err == WPK_OK && is_max && !wpk_dtype_is_float(dtype) && dtype != WPK_U8 &&
        dtype != WPK_I8) {
        err =
            wpk_fail(printer->diag, WPK_EUNSUPPORTED, "a maximum of other integers than u8 and i8");
    }
    if (err == WPK_OK && wpk_graph_int(printer->node, "p", 2) < 1) {
        err = wpk_fail(printer->diag, WPK_EINVAL, "its p is less than 1");
    }
    if (err != WPK_OK) {
        return err;
    }
    wpk_printer_output(printer);
    bool any = print_kernel_axes(&axes, &w, "");
    if (printer->node->part == 1) {
        print_maximum_index(printer, &w, any ? wpk_buf_text(&axes) : "r0:1");
        wpk_buf_fini(&axes);
        return wpk_buf_status(text);
    }
    wpk_buf_append_text(text, "(");
    bool is_lp = printer->op->kind == WPK_KIND_LP_POOL;
    long long p = (long long)wpk_graph_int(printer->node, "p", 2);
    if (is_lp) {
        wpk_buf_append_text(text, "pow(");
    }
    if (any) {
        wpk_buf_printf(text, "%s(%s) ", is_max ? "max" : "sum", wpk_buf_text(&axes));
    }
    wpk_buf_append_text(text, is_lp ? "pow(abs(X[d0,d1" : "X[d0,d1");
    print_positions(text, &w);
    if (is_lp) {
        wpk_buf_printf(text, "]), %lld), 1.0 / %lld))", p, p);
    } else {
        wpk_buf_printf(text, "%s)", is_max ? lowest_of(dtype) : "]");
    }
    if (!is_max && !is_lp) {
        print_average(printer, &w);
    }
    wpk_buf_fini(&axes);
    return wpk_buf_status(text);
}

/* ---- products */

/* The batch axes of an operand of a MatMul, and a comma behind each. */
static void print_batch(struct wpk_printer *printer, const struct wpk_graph_value *value,
                        int batch_rank)
{
    int rank = value->rank - 2;

    for (int d = 0; d < rank; d++) {
        int axis = batch_rank - rank + d;
        if (value->extent[d] == 1 && printer->out->extent[axis] != 1) {
            wpk_buf_append_text(printer->text, "0,");
        } else {
            wpk_buf_printf(printer->text, "d%d,", axis);
        }
    }
}

wpk_err wpk_print_matmul(struct wpk_printer *printer)
{
    const struct wpk_graph_value *a = printer->input[0];
    const struct wpk_graph_value *b = printer->input[1];
    int batch = printer->out->rank - (a->rank > 1) - (b->rank > 1);

    wpk_printer_output(printer);
    wpk_buf_printf(printer->text, "sum(k:%lld) ", (long long)a->extent[a->rank - 1]);
    wpk_printer_factor(printer, 0);
    wpk_buf_append_text(printer->text, "[");
    print_batch(printer, a, batch);
    if (a->rank > 1) {
        wpk_buf_printf(printer->text, "d%d,", batch);
    }
    wpk_buf_append_text(printer->text, "k]");
    wpk_printer_end_factor(printer, 0);
    wpk_buf_append_text(printer->text, " * ");
    wpk_printer_factor(printer, 1);
    wpk_buf_append_text(printer->text, "[");
    print_batch(printer, b, batch);
    wpk_buf_append_text(printer->text, "k");
    if (b->rank > 1) {
        wpk_buf_printf(printer->text, ",d%d", printer->out->rank - 1);
    }
    wpk_buf_append_text(printer->text, "]");
    wpk_printer_end_factor(printer, 1);
    return WPK_OK;
}

static void print_factor(struct wpk_printer *printer, const char *name)
{
    double factor = wpk_graph_real(printer->node, name, 1);

    if (factor != 1) {
        wpk_printer_number(printer, factor);
        wpk_buf_append_text(printer->text, " * ");
    }
}

wpk_err wpk_print_gemm(struct wpk_printer *printer)
{
    bool trans_a = wpk_graph_int(printer->node, "transA", 0) != 0;
    bool trans_b = wpk_graph_int(printer->node, "transB", 0) != 0;
    double beta = wpk_graph_real(printer->node, "beta", 1); /* 0: no NaN of C */
    bool adds = printer->input[2] != NULL && beta != 0;

    wpk_printer_output(printer);
    print_factor(printer, "alpha");
    wpk_buf_printf(printer->text, "(sum(k:%lld) ", (long long)printer->input[0]->extent[!trans_a]);
    wpk_buf_append_text(printer->text, trans_a ? "X[k,d0] * " : "X[d0,k] * ");
    wpk_buf_append_text(printer->text, trans_b ? "X1[d1,k])" : "X1[k,d1])");
    if (adds) {
        wpk_buf_append_text(printer->text, " + ");
        print_factor(printer, "beta");
        wpk_printer_broadcast(printer, 2);
    }
    return WPK_OK;
}
