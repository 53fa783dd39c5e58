/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that only move elements. */
#include "model/operator/operator_forms.h"

#include <math.h>
#include <string.h>

/* ---- reshaping: axes of input and output that span the same elements form a group
 *
 * [2, 3, 4, 5] to [6, 20] are two groups. Within a group the element's number is composed of the
 * output's axes and taken apart into the input's: (d0*20 + d1) / 5 % 4. Axes of one element take
 * part in no group. */

struct group {
    int axis[WPK_RANK_MAX]; /* without those of one element */
    int count;
    int64_t elements;
};

/* Take the next axis with more than one element into the group. */
static void take_axis(const struct wpk_graph_value *value, int *next, struct group *group)
{
    while (*next < value->rank && value->extent[*next] == 1) {
        (*next)++;
    }
    if (*next < value->rank) {
        group->axis[group->count++] = *next;
        group->elements *= value->extent[(*next)++];
    }
}

/* The number of an element within the group, by the output's axes. */
static void print_number(struct wpk_buf *text, const struct wpk_graph_value *out,
                         const struct group *group)
{
    int64_t stride = group->elements;

    for (int i = 0; i < group->count; i++) {
        stride /= out->extent[group->axis[i]];
        if (stride > 1) {
            wpk_buf_printf(text, "%s%lld*d%d", i > 0 ? "+" : "", (long long)stride, group->axis[i]);
        } else {
            wpk_buf_printf(text, "%sd%d", i > 0 ? "+" : "", group->axis[i]);
        }
    }
}

/* The indices of the input's axes in the group; index[axis] is written. */
static void print_group(const struct wpk_graph_value *x, const struct wpk_graph_value *out,
                        const struct group *from, const struct group *to, struct wpk_buf *index)
{
    struct wpk_buf number = {0};
    int64_t stride = from->elements;

    print_number(&number, out, to);
    for (int i = 0; i < from->count; i++) {
        int axis = from->axis[i];
        struct wpk_buf *text = &index[axis];
        stride /= x->extent[axis];
        wpk_buf_printf(text, to->count > 1 && from->count > 1 ? "(%s)" : "%s",
                       wpk_buf_text(&number));
        if (stride > 1) {
            wpk_buf_printf(text, "/%lld", (long long)stride);
        }
        if (i > 0) {
            wpk_buf_printf(text, "%%%lld", (long long)x->extent[axis]);
        }
    }
    wpk_buf_fini(&number);
}

wpk_err wpk_print_reshape(struct wpk_printer *printer)
{
    const struct wpk_graph_value *x = printer->input[0];
    const struct wpk_graph_value *out = printer->out;
    struct wpk_buf index[WPK_RANK_MAX] = {{.data = NULL}};
    int from_next = 0;
    int to_next = 0;

    if (wpk_graph_elements(x) != wpk_graph_elements(out)) { /* the groups would not end */
        return wpk_fail(printer->diag, WPK_EINVAL, "%lld elements become %lld",
                        (long long)wpk_graph_elements(x), (long long)wpk_graph_elements(out));
    }

    while (from_next < x->rank || to_next < out->rank) {
        struct group from = {.elements = 1};
        struct group to = {.elements = 1};
        take_axis(x, &from_next, &from);
        take_axis(out, &to_next, &to);
        while (from.elements != to.elements) {
            if (from.elements < to.elements) {
                take_axis(x, &from_next, &from);
            } else {
                take_axis(out, &to_next, &to);
            }
        }
        print_group(x, out, &from, &to, index);
    }
    wpk_printer_output(printer);
    for (int d = 0; d < x->rank; d++) {
        wpk_buf_printf(printer->text, "%s%s", d > 0 ? "," : "X[",
                       index[d].size > 0 ? wpk_buf_text(&index[d]) : "0");
        wpk_buf_fini(&index[d]);
    }
    wpk_buf_append_text(printer->text, x->rank > 0 ? "]" : "X[]");
    return WPK_OK;
}

/* ---- the others */

wpk_err wpk_print_transpose(struct wpk_printer *printer)
{
    int order[WPK_RANK_MAX];
    int axis_of[WPK_RANK_MAX] = {0};
    int rank = printer->input[0]->rank;

    wpk_err err = wpk_operator_order(printer->node, rank, order, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    for (int d = 0; d < rank; d++) {
        axis_of[order[d]] = d;
    }
    wpk_printer_output(printer);
    wpk_buf_append_text(printer->text, "X[");
    for (int d = 0; d < rank; d++) {
        wpk_buf_printf(printer->text, "%sd%d", d > 0 ? "," : "", axis_of[d]);
    }
    wpk_buf_append_text(printer->text, "]");
    return WPK_OK;
}

static void print_part(struct wpk_printer *printer, int input, int axis, int64_t begin)
{
    wpk_buf_printf(printer->text, "X%.0d", input);
    for (int d = 0; d < printer->out->rank; d++) {
        wpk_buf_printf(printer->text, "%sd%d", d > 0 ? "," : "[", d);
        if (d == axis) {
            /* Even 0: an axis alone would take its extent from this input. */
            wpk_buf_printf(printer->text, "-%lld", (long long)begin);
        }
    }
    wpk_buf_append_text(printer->text, "]");
}

wpk_err wpk_print_concat(struct wpk_printer *printer)
{
    int64_t begin = 0;
    int axis = 0;
    int last = printer->node->input_count - 1;

    wpk_err err = wpk_operator_axis_of(printer->node, 0, printer->out->rank, &axis, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_printer_output(printer);
    for (int i = 0; i < last; i++) {
        int64_t end = begin + printer->input[i]->extent[axis];
        wpk_buf_printf(printer->text, "select(d%d < %lld, ", axis, (long long)end);
        print_part(printer, i, axis, begin);
        wpk_buf_append_text(printer->text, ", ");
        begin = end;
    }
    print_part(printer, last, axis, begin);
    for (int i = 0; i < last; i++) {
        wpk_buf_append_text(printer->text, ")");
    }
    return WPK_OK;
}

wpk_err wpk_print_slice(struct wpk_printer *printer)
{
    struct wpk_operator_slice slice;

    wpk_err err = wpk_operator_slice(printer->graph, printer->node, &slice, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_printer_output(printer);
    for (int d = 0; d < printer->out->rank; d++) {
        wpk_buf_append_text(printer->text, d > 0 ? "," : "X[");
        if (slice.start[d] > 0) {
            wpk_buf_printf(printer->text, "%lld", (long long)slice.start[d]);
        }
        if (slice.step[d] == 1 || slice.step[d] == -1) {
            wpk_buf_append_text(printer->text, slice.step[d] < 0    ? "-"
                                               : slice.start[d] > 0 ? "+"
                                                                    : "");
        } else {
            wpk_buf_printf(printer->text, "%s%lld*",
                           slice.step[d] > 0 && slice.start[d] > 0 ? "+" : "",
                           (long long)slice.step[d]);
        }
        wpk_buf_printf(printer->text, "d%d", d);
        if (printer->out->extent[d] != printer->input[0]->extent[d] && slice.start[d] == 0) {
            wpk_buf_append_text(printer->text, "+0"); /* an axis alone has the input's extent */
        }
    }
    wpk_buf_append_text(printer->text, "]");
    return WPK_OK;
}

wpk_err wpk_print_pad(struct wpk_printer *printer)
{
    const struct wpk_graph_value *value = printer->input[2];
    int64_t before[WPK_RANK_MAX];
    int64_t after[WPK_RANK_MAX];
    double outside = wpk_graph_real(printer->node, "value", 0);

    if (strcmp(wpk_graph_text(printer->node, "mode", "constant"), "constant") != 0) {
        return wpk_print_border(printer);
    }
    wpk_err err = wpk_operator_pads(printer->graph, printer->node, before, after, printer->diag);
    if (err == WPK_OK && value != NULL &&
        (value->data == NULL || wpk_graph_elements(value) != 1 ||
         isnan(wpk_graph_element(value, 0)))) {
        err = wpk_fail(printer->diag, WPK_EUNSUPPORTED,
                       "its value (input 2) must be a constant number");
    }
    if (err != WPK_OK) {
        return err;
    }
    wpk_printer_output(printer);
    for (int d = 0; d < printer->out->rank; d++) {
        bool is_whole = before[d] == 0 && after[d] == 0;
        wpk_buf_printf(printer->text, "%sd%d", d > 0 ? "," : "X[", d);
        if (!is_whole) {
            wpk_buf_printf(printer->text, before[d] < 0 ? "+%lld" : "-%lld",
                           (long long)(before[d] < 0 ? -before[d] : before[d]));
        }
    }
    if (value != NULL && wpk_graph_element(value, 0) != 0) {
        wpk_buf_append_text(printer->text, " | ");
        wpk_printer_constant(printer, value);
    } else if (value == NULL && outside != 0) {
        wpk_buf_append_text(printer->text, " | ");
        wpk_printer_number(printer, outside);
    }
    wpk_buf_append_text(printer->text, "]");
    return WPK_OK;
}
