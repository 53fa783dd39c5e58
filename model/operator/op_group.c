/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/operator_forms.h"

#include <string.h>

#define RANK_MAX 7 /* a mean runs over all axes but the first; the notation sums over six */

static bool is_lrn(const struct wpk_operator *op)
{
    return strcmp(op->name, "LRN") == 0;
}

wpk_err wpk_infer_group(const struct wpk_inference *in)
{
    int64_t groups = wpk_graph_int(in->node, is_lrn(in->op) ? "size" : "num_groups", 0);
    bool fits = in->x->rank >= 2 && in->x->rank <= RANK_MAX && groups >= 1 &&
                groups <= WPK_ELEMENTS_MAX && (is_lrn(in->op) || in->x->extent[1] % groups == 0);

    for (int i = 1; fits && i < in->node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(in->graph, in->node, i);
        fits = input != NULL && input->rank == 1 && input->dtype == in->x->dtype &&
               (input->extent[0] == in->x->extent[1] || input->extent[0] == groups);
    }
    if (!fits) {
        return wpk_fail(in->diag, WPK_EINVAL, "its groups, scale or bias do not fit its channels");
    }
    return wpk_infer_like(in);
}

/* "X[d0,4*d1+c,r2,r3]": the elements of a group, named by the axes a and g. */
static void print_element(struct wpk_printer *printer, long long channels)
{
    wpk_buf_printf(printer->text, "X[a,%lld*g+c", channels);
    for (int d = 2; d < printer->out->rank; d++) {
        wpk_buf_printf(printer->text, ",r%d", d);
    }
    wpk_buf_append_text(printer->text, "]");
}

/* "; M[a:2,g:3] = (sum(c:4,r2:5) " */
static void begin_mean(struct wpk_printer *printer, const char *name, long long groups,
                       long long channels)
{
    const int64_t *extent = printer->out->extent;

    wpk_buf_printf(printer->text, "; %s[a:%lld,g:%lld] = (sum(c:%lld", name, (long long)extent[0],
                   groups, channels);
    for (int d = 2; d < printer->out->rank; d++) {
        wpk_buf_printf(printer->text, ",r%d:%lld", d, (long long)extent[d]);
    }
    wpk_buf_append_text(printer->text, ") ");
}

static void print_parameter(struct wpk_printer *printer, int input, long long channels)
{
    bool is_channel = printer->input[input]->extent[0] == printer->out->extent[1];

    wpk_buf_printf(printer->text, is_channel ? "X%d[d1]" : "X%d[d1/%lld]", input, channels);
}

static void print_group_norm(struct wpk_printer *printer)
{
    long long groups = (long long)wpk_graph_int(printer->node, "num_groups", 1);
    long long channels = (long long)printer->out->extent[1] / groups;
    long long count = channels;

    for (int d = 2; d < printer->out->rank; d++) {
        count *= (long long)printer->out->extent[d];
    }
    wpk_buf_printf(printer->text, "(X[%s] - M[d0,d1/%lld]) / sqrt(V[d0,d1/%lld] + ",
                   wpk_axis_names(printer->out->rank), channels, channels);
    wpk_printer_number(printer, wpk_graph_real(printer->node, "epsilon", 1e-5));
    wpk_buf_append_text(printer->text, ") * ");
    print_parameter(printer, 1, channels);
    wpk_buf_append_text(printer->text, " + ");
    print_parameter(printer, 2, channels);
    begin_mean(printer, "M", groups, channels);
    print_element(printer, channels);
    wpk_buf_printf(printer->text, ") / %lld", count);
    begin_mean(printer, "V", groups, channels);
    for (int i = 0; i < 2; i++) {
        wpk_buf_append_text(printer->text, i > 0 ? " * (" : "(");
        print_element(printer, channels);
        wpk_buf_append_text(printer->text, " - M[a,g])");
    }
    wpk_buf_printf(printer->text, ") / %lld", count);
}

/* X / (bias + alpha / size * the sum of squares of `size` channels around it) ^ beta */
static void print_lrn(struct wpk_printer *printer)
{
    long long size = (long long)wpk_graph_int(printer->node, "size", 1);
    const char *names = wpk_axis_names(printer->out->rank);

    wpk_buf_printf(printer->text, "X[%s] / pow(", names);
    wpk_printer_number(printer, wpk_graph_real(printer->node, "bias", 1));
    wpk_buf_append_text(printer->text, " + ");
    wpk_printer_number(printer, wpk_graph_real(printer->node, "alpha", 1e-4));
    wpk_buf_printf(printer->text, " / %lld * (sum(r:%lld) ", size, size);
    for (int i = 0; i < 2; i++) {
        wpk_buf_printf(printer->text, "%sX[d0,d1+r-%lld%s]", i > 0 ? " * " : "", (size - 1) / 2,
                       names + strlen("d0,d1"));
    }
    wpk_buf_append_text(printer->text, "), ");
    wpk_printer_number(printer, wpk_graph_real(printer->node, "beta", 0.75));
    wpk_buf_append_text(printer->text, ")");
}

wpk_err wpk_print_group(struct wpk_printer *printer)
{
    wpk_printer_output(printer);
    if (is_lrn(printer->op)) {
        print_lrn(printer);
    } else {
        print_group_norm(printer);
    }
    return WPK_OK;
}
