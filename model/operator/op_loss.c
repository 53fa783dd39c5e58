/* SPDX-License-Identifier: Apache-2.0 */
/* Scores P are input 0 [N, C, d1, ...], or their log-softmax over the classes; labels are
 * [N, d1, ...], named by their axes d0, d1, ..., and c is a class:
 *     L[d0,d1] = -sum(c) select(X1[d0,d1] == c, P[d0,c,d1] * weight[c], 0)
 * then none, or summed over all axes, or that sum divided by that of the weights. */
#include "model/operator/operator_forms.h"

#include <string.h>

enum { SCORES, LABELS, WEIGHTS };

wpk_err wpk_infer_loss(const struct wpk_inference *in)
{
    const struct wpk_graph_value *labels = wpk_graph_input(in->graph, in->node, LABELS);
    const struct wpk_graph_value *weights = wpk_graph_input(in->graph, in->node, WEIGHTS);
    bool fits = in->x->rank >= 2 && labels->rank == in->x->rank - 1;

    for (int d = 0; fits && d < labels->rank; d++) {
        fits = labels->extent[d] == in->x->extent[d > 0 ? d + 1 : 0];
    }
    if (fits && weights != NULL) {
        fits = weights->rank == 1 && weights->extent[0] == in->x->extent[1] &&
               weights->dtype == in->x->dtype;
    }
    if (!fits || wpk_dtype_is_float(labels->dtype)) {
        return wpk_fail(in->diag, WPK_EINVAL, "its labels or weights do not fit its scores");
    }
    if (in->node->part == 1) {
        return wpk_infer_like(in);
    }
    bool is_reduced = strcmp(wpk_graph_text(in->node, "reduction", "mean"), "none") != 0;
    return is_reduced ? WPK_OK : wpk_infer_as(in, labels);
}

/* Append the text before a place, and "[d0,c,d1]", or "[d0,d1]" without a class. */
static void print_place(const struct wpk_printer *printer, const char *before, const char *class)
{
    const char *names = wpk_axis_names(printer->input[LABELS]->rank);

    wpk_buf_printf(printer->text, "%s[d0%s%s%s]", before, class[0] != '\0' ? "," : "", class,
                   names + strlen("d0"));
}

/* "P[d0,c,d1] = X[d0,c,d1] - M[d0,d1] - log(Z[d0,d1])" and its parts. */
static void print_softmax(struct wpk_printer *printer, const char *class)
{
    long long classes = (long long)printer->input[SCORES]->extent[1];

    print_place(printer, "X", class);
    print_place(printer, " - M", "");
    print_place(printer, " - log(Z", "");
    print_place(printer, ") where M", "");
    wpk_buf_printf(printer->text, " = max(b:%lld) ", classes);
    print_place(printer, "X", "b");
    print_place(printer, "; Z", "");
    wpk_buf_printf(printer->text, " = sum(b:%lld) ", classes);
    print_place(printer, "exp(X", "b");
    print_place(printer, " - M", "");
    wpk_buf_append_text(printer->text, ")");
}

/* "(sum(d0:3,d1:4,c:5) select(X1[d0,d1] == c && c != 2, what, 0))"; over c alone, unless `all`. */
static void print_chosen(struct wpk_printer *printer, bool all, bool with_scores)
{
    const struct wpk_graph_attribute *ignored =
        wpk_graph_attribute(printer->node, "ignore_index", WPK_ATTRIBUTE_INT);
    const struct wpk_graph_value *labels = printer->input[LABELS];
    bool has_weights = printer->input[WEIGHTS] != NULL;

    wpk_buf_append_text(printer->text, "(sum(");
    for (int d = 0; all && d < labels->rank; d++) {
        wpk_buf_printf(printer->text, "d%d:%lld,", d, (long long)labels->extent[d]);
    }
    wpk_buf_printf(printer->text, "c:%lld) select(", (long long)printer->input[SCORES]->extent[1]);
    print_place(printer, "X1", "");
    wpk_buf_append_text(printer->text, " == c");
    if (ignored != NULL) {
        wpk_buf_printf(printer->text, " && c != %lld", (long long)ignored->integer);
    }
    wpk_buf_append_text(printer->text, ", ");
    if (with_scores) {
        print_place(printer, strcmp(printer->op->name, "SoftmaxCrossEntropyLoss") == 0 ? "P" : "X",
                    "c");
    }
    wpk_buf_append_text(printer->text, with_scores && has_weights ? " * " : "");
    if (has_weights) {
        wpk_buf_append_text(printer->text, "X2[c]");
    } else if (!with_scores) {
        wpk_buf_printf(printer->text, "%s(1)", wpk_dtype_name(printer->out->dtype));
    }
    wpk_buf_append_text(printer->text, ", 0))");
}

wpk_err wpk_print_loss(struct wpk_printer *printer)
{
    const char *reduction = wpk_graph_text(printer->node, "reduction", "mean");

    if (printer->node->part == 1) {
        print_place(printer, "Y", "c");
        wpk_buf_append_text(printer->text, " = ");
        print_softmax(printer, "c");
        return WPK_OK;
    }
    bool is_mean = strcmp(reduction, "mean") == 0, is_reduced = strcmp(reduction, "none") != 0;
    wpk_printer_output(printer);
    wpk_buf_append_text(printer->text, "-");
    print_chosen(printer, is_reduced, true);
    if (is_mean) {
        wpk_buf_append_text(printer->text, " / ");
        print_chosen(printer, true, false);
    }
    if (strcmp(printer->op->name, "SoftmaxCrossEntropyLoss") == 0) {
        print_place(printer, " where P", "c");
        wpk_buf_append_text(printer->text, " = ");
        print_softmax(printer, "c");
    }
    return WPK_OK;
}
