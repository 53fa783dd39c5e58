/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/operator_forms.h"

#include "ir/program.h"

#include <stdio.h>
#include <string.h>

/* ---- shapes */

static wpk_err infer_blocks(const struct wpk_inference *in)
{
    const int64_t *from = in->x->extent;
    int64_t block = wpk_graph_int(in->node, "blocksize", 0);
    bool is_depth = in->op->kind == WPK_KIND_SPACE_TO_DEPTH;

    if (in->x->rank != 4 || block < 1 || block > 4096) {
        return wpk_fail(in->diag, WPK_EINVAL,
                        "its input has not four axes, or its blocksize is no extent");
    }
    if (is_depth ? from[2] % block != 0 || from[3] % block != 0 : from[1] % (block * block) != 0) {
        return wpk_fail(in->diag, WPK_EINVAL, "its blocksize does not divide its input");
    }
    in->out->rank = 4;
    in->out->extent[0] = from[0];
    in->out->extent[1] = is_depth ? from[1] * block * block : from[1] / (block * block);
    in->out->extent[2] = is_depth ? from[2] / block : from[2] * block;
    in->out->extent[3] = is_depth ? from[3] / block : from[3] * block;
    return WPK_OK;
}

static wpk_err infer_tile(const struct wpk_inference *in)
{
    int64_t repeats[WPK_RANK_MAX];
    int count = 0;

    wpk_err err =
        wpk_operator_integers(in->graph, in->node, "repeats", 1, repeats, &count, in->diag);
    if (err == WPK_OK && count != in->x->rank) {
        err = wpk_fail(in->diag, WPK_EINVAL, "its repeats are not one for each axis");
    }
    in->out->rank = in->x->rank;
    for (int d = 0; err == WPK_OK && d < count; d++) {
        if (repeats[d] < 1 || repeats[d] > WPK_ELEMENTS_MAX / in->x->extent[d]) {
            err = wpk_fail(in->diag, WPK_EINVAL, "one of its repeats is no extent");
        } else {
            in->out->extent[d] = in->x->extent[d] * repeats[d];
        }
    }
    return err;
}

static wpk_err infer_center(const struct wpk_inference *in)
{
    const struct wpk_graph_attribute *axes =
        wpk_graph_attribute(in->node, "axes", WPK_ATTRIBUTE_INTS);
    int64_t wanted[WPK_RANK_MAX];
    int count = 0;

    wpk_err err = wpk_operator_integers(in->graph, in->node, "shape", 1, wanted, &count, in->diag);
    if (err == WPK_OK && count != (axes != NULL ? axes->count : in->x->rank)) {
        err = wpk_fail(in->diag, WPK_EINVAL, "its shape is not one extent for each axis");
    }
    in->out->rank = in->x->rank;
    memcpy(in->out->extent, in->x->extent, sizeof(in->out->extent));
    for (int i = 0; err == WPK_OK && i < count; i++) {
        int axis = i;
        if (axes != NULL) {
            err = wpk_operator_axis(axes->integers[i], in->x->rank, &axis, in->diag);
        }
        if (err == WPK_OK) {
            in->out->extent[axis] = wanted[i];
        }
    }
    return err;
}

wpk_err wpk_infer_place(const struct wpk_inference *in)
{
    switch (in->op->kind) {
    case WPK_KIND_TILE:
        return infer_tile(in);
    case WPK_KIND_CENTER:
        return infer_center(in);
    default:
        return infer_blocks(in);
    }
}

/* ---- equations */

static bool is_columns_first(const struct wpk_printer *printer)
{
    return strcmp(wpk_graph_text(printer->node, "mode", "DCR"), "CRD") == 0;
}

static void print_depth_to_space(struct wpk_printer *printer)
{
    long long block = (long long)wpk_graph_int(printer->node, "blocksize", 0);
    long long channels = (long long)printer->out->extent[1];

    if (is_columns_first(printer)) {
        wpk_buf_printf(printer->text, "X[d0,%lld*d1+%lld*(d2%%%lld)+d3%%%lld", block * block, block,
                       block, block);
    } else {
        wpk_buf_printf(printer->text, "X[d0,d1+%lld*(d2%%%lld)+%lld*(d3%%%lld)", block * channels,
                       block, channels, block);
    }
    wpk_buf_printf(printer->text, ",d2/%lld,d3/%lld]", block, block);
}

static void print_space_to_depth(struct wpk_printer *printer)
{
    long long block = (long long)wpk_graph_int(printer->node, "blocksize", 0);
    long long channels = (long long)printer->input[0]->extent[1];
    long long area = block * block;

    if (is_columns_first(printer)) {
        wpk_buf_printf(printer->text, "X[d0,d1/%lld,%lld*d2+d1%%%lld/%lld,%lld*d3+d1%%%lld]", area,
                       block, area, block, block, block);
    } else {
        wpk_buf_printf(printer->text, "X[d0,d1%%%lld,%lld*d2+d1/%lld,%lld*d3+d1/%lld%%%lld]",
                       channels, block, channels * block, block, channels, block);
    }
}

static void print_tile(struct wpk_printer *printer)
{
    const struct wpk_graph_value *x = printer->input[0];

    for (int d = 0; d < x->rank; d++) {
        wpk_buf_printf(printer->text, "%sd%d", d > 0 ? "," : "X[", d);
        if (printer->out->extent[d] != x->extent[d]) {
            wpk_buf_printf(printer->text, "%%%lld", (long long)x->extent[d]);
        }
    }
    wpk_buf_append_text(printer->text, "]");
}

static void print_center(struct wpk_printer *printer)
{
    const struct wpk_graph_value *x = printer->input[0];

    for (int d = 0; d < x->rank; d++) {
        long long more = (long long)(printer->out->extent[d] - x->extent[d]);
        wpk_buf_printf(printer->text, "%sd%d", d > 0 ? "," : "X[", d);
        if (more != 0) {
            wpk_buf_printf(printer->text, more > 0 ? "-%lld" : "+%lld",
                           more > 0 ? more / 2 : -more / 2);
        }
    }
    wpk_buf_append_text(printer->text, "]");
}

wpk_err wpk_print_place(struct wpk_printer *printer)
{
    wpk_printer_output(printer);
    switch (printer->op->kind) {
    case WPK_KIND_TILE:
        print_tile(printer);
        break;
    case WPK_KIND_CENTER:
        print_center(printer);
        break;
    case WPK_KIND_DEPTH_TO_SPACE:
        print_depth_to_space(printer);
        break;
    default:
        print_space_to_depth(printer);
        break;
    }
    return WPK_OK;
}

/* ---- borders */

/* A border whose axes from `axis` on are to be printed; index[d] is that of an earlier axis. */
struct border {
    struct wpk_printer *printer;
    const char *mode;
    int64_t before[WPK_RANK_MAX];
    int64_t after[WPK_RANK_MAX];
    char index[WPK_RANK_MAX][64];
};

static void print_from(struct border *border, int axis);

static void print_with(struct border *border, int axis, const char *format, long long a,
                       long long b)
{
    snprintf(border->index[axis], sizeof(border->index[axis]), format, axis, a, b);
    print_from(border, axis + 1);
}

/* "SIGN*d<axis>+offset" as an index, of what follows. */
static void print_at(struct border *border, int axis, int sign, int64_t offset)
{
    char *index = border->index[axis];
    size_t size = sizeof(border->index[axis]);

    if (sign < 0) {
        snprintf(index, size, "%lld-d%d", (long long)offset, axis);
    } else {
        snprintf(index, size, "%sd%d%+lld", sign == 0 ? "0*" : "", axis, (long long)offset);
    }
    print_from(border, axis + 1);
}

/* The elements of one axis: before its begin, inside, and behind its end. A negative pad takes
 * elements away, so that its side does not occur. */
static void print_sides(struct border *border, int axis)
{
    struct wpk_buf *text = border->printer->text;
    int64_t last = border->printer->input[0]->extent[axis] - 1;
    int64_t before = border->before[axis];
    bool reflects = strcmp(border->mode, "reflect") == 0;

    if (before > 0) {
        wpk_buf_printf(text, "select(d%d < %lld, ", axis, (long long)before);
        print_at(border, axis, reflects ? -1 : 0, reflects ? before : 0);
        wpk_buf_append_text(text, ", ");
    }
    if (border->after[axis] > 0) {
        wpk_buf_printf(text, "select(d%d < %lld, ", axis, (long long)(before + last + 1));
    }
    print_at(border, axis, 1, -before);
    if (border->after[axis] > 0) {
        wpk_buf_append_text(text, ", ");
        print_at(border, axis, reflects ? -1 : 0, reflects ? 2 * last + before : last);
    }
    wpk_buf_printf(text, "%s%s", before > 0 ? ")" : "", border->after[axis] > 0 ? ")" : "");
}

static void print_reflected(struct border *border, int axis)
{
    struct wpk_buf *text = border->printer->text;
    long long extent = (long long)border->printer->input[0]->extent[axis];
    long long period = 2 * (extent - 1);
    long long before = (long long)border->before[axis];

    wpk_buf_printf(text, "select((d%d-%lld) %% %lld < %lld, ", axis, before, period, extent);
    print_with(border, axis, "(d%d-%lld)%%%lld", before, period);
    wpk_buf_append_text(text, ", ");
    snprintf(border->index[axis], sizeof(border->index[axis]), "%lld-(d%d-%lld)%%%lld", period,
             axis, before, period);
    print_from(border, axis + 1);
    wpk_buf_append_text(text, ")");
}

/* The elements of an axis that negative pads leave. */
static int64_t left(const struct border *border, int axis)
{
    int64_t before = border->before[axis], after = border->after[axis];

    return border->printer->input[0]->extent[axis] + (before < 0 ? before : 0) +
           (after < 0 ? after : 0);
}

/* The elements that are left repeat. */
static void print_wrapped(struct border *border, int axis)
{
    int64_t before = border->before[axis];
    int64_t first = before < 0 ? -before : 0;

    snprintf(border->index[axis], sizeof(border->index[axis]), "%lld+(d%d-%lld)%%%lld",
             (long long)first, axis, (long long)(before + first), (long long)left(border, axis));
    print_from(border, axis + 1);
}

static void print_from(struct border *border, int axis)
{
    struct wpk_printer *printer = border->printer;

    if (axis == printer->out->rank) {
        for (int d = 0; d < axis; d++) {
            wpk_buf_printf(printer->text, "%s%s", d > 0 ? "," : "X[", border->index[d]);
        }
        wpk_buf_append_text(printer->text, "]");
        return;
    }
    /* padding that is shorter than the axis is filled by one reflection */
    int64_t most = printer->input[0]->extent[axis] - 1;
    if (border->before[axis] == 0 && border->after[axis] == 0) {
        print_with(border, axis, "d%d", 0, 0);
    } else if (strcmp(border->mode, "wrap") == 0) {
        print_wrapped(border, axis);
    } else if (strcmp(border->mode, "edge") == 0 ||
               (border->before[axis] <= most && border->after[axis] <= most)) {
        print_sides(border, axis);
    } else {
        print_reflected(border, axis);
    }
}

wpk_err wpk_print_border(struct wpk_printer *printer)
{
    struct border border = {.printer = printer, .mode = wpk_graph_text(printer->node, "mode", "")};
    const struct wpk_graph_value *x = printer->input[0];
    int loads = 1;

    wpk_err err = wpk_operator_pads(printer->graph, printer->node, border.before, border.after,
                                    printer->diag);
    for (int d = 0; err == WPK_OK && d < x->rank; d++) {
        bool is_wider = border.before[d] > 0 || border.after[d] > 0;
        loads *= 1 + (border.before[d] > 0) + (border.after[d] > 0);
        if (is_wider && left(&border, d) < 1) {
            err = wpk_fail(printer->diag, WPK_EINVAL, "its pads leave no element of axis %d", d);
        } else if (is_wider && x->extent[d] == 1 && strcmp(border.mode, "reflect") == 0) {
            err = wpk_fail(printer->diag, WPK_EINVAL, "it reflects axis %d, which has one element",
                           d);
        }
    }
    if (err == WPK_OK && loads > WPK_LOADS_MAX) { /* 3 for each axis */
        err = wpk_fail(printer->diag, WPK_EUNSUPPORTED, "its mode %s is supported on five axes",
                       border.mode);
    }
    if (err == WPK_OK) {
        wpk_printer_output(printer);
        print_from(&border, 0);
    }
    return err;
}
