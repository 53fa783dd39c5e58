/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose equation is their own: a Clip's limits, any number of inputs, an equation that
 * an attribute is; and those that have none. */
#include "model/operator/print_text.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A limit of a Clip: an attribute before opset 11, an input since. Without either it is the type's
 * largest finite number, with this sign. */
static wpk_err print_limit(struct wpk_printer *printer, const char *name, int input, double sign)
{
    double most = printer->out->dtype == WPK_F64 ? DBL_MAX : (double)FLT_MAX;
    const struct wpk_graph_attribute *attribute =
        wpk_graph_attribute(printer->node, name, WPK_ATTRIBUTE_FLOAT);
    const struct wpk_graph_value *value = printer->input[input];

    wpk_buf_append_text(printer->text, ", ");
    if (value == NULL) {
        wpk_printer_number(printer, attribute != NULL ? (double)attribute->real : sign * most);
        return WPK_OK;
    }
    if (wpk_graph_elements(value) != 1 || value->dtype != printer->out->dtype) {
        wpk_diag_set(printer->diag, "its %s must be one number of its input's type", name);
        return WPK_EUNSUPPORTED;
    }
    if (value->data != NULL && !isnan(wpk_graph_element(value, 0))) {
        wpk_printer_constant(printer, value);
        return WPK_OK;
    }
    wpk_printer_operand(printer,
                        input); /* computed, or a NaN, which is no number of the notation */
    wpk_buf_append_text(printer->text, "[");
    for (int d = 0; d < value->rank; d++) {
        wpk_buf_append_text(printer->text, d > 0 ? ",0" : "0");
    }
    wpk_buf_append_text(printer->text, "]");
    return WPK_OK;
}

/* True if the Clip has this limit, and it limits something. */
static bool has_limit(const struct wpk_printer *printer, const char *name, int input)
{
    const struct wpk_graph_attribute *attribute =
        wpk_graph_attribute(printer->node, name, WPK_ATTRIBUTE_FLOAT);
    const struct wpk_graph_value *value = printer->input[input];

    return value != NULL ? value->data == NULL || wpk_graph_elements(value) != 1 ||
                               !isinf(wpk_graph_element(value, 0))
           : attribute != NULL ? !isinf(attribute->real)
                               : wpk_dtype_is_float(printer->out->dtype);
}

wpk_err wpk_print_clip(struct wpk_printer *printer)
{
    bool has_low = has_limit(printer, "min", 1);
    bool has_high = has_limit(printer, "max", 2);
    wpk_err err = WPK_OK;

    wpk_printer_output(printer);
    wpk_buf_append_text(printer->text, has_high ? "min(" : "");
    wpk_buf_append_text(printer->text, has_low ? "max(" : "");
    wpk_printer_broadcast(printer, 0);
    if (has_low) {
        err = print_limit(printer, "min", 1, -1);
        wpk_buf_append_text(printer->text, ")");
    }
    if (err == WPK_OK && has_high) {
        err = print_limit(printer, "max", 2, 1);
        wpk_buf_append_text(printer->text, ")");
    }
    return err;
}

/* "X[..] + X1[..] + X2[..]", "(X[..] + X1[..]) / 2", or "min(X[..], min(X1[..], X2[..]))". */
wpk_err wpk_print_variadic(struct wpk_printer *printer)
{
    bool is_mean = strcmp(printer->op->text, "mean") == 0;
    const char *text = is_mean ? "+" : printer->op->text;
    bool is_call = isalpha((unsigned char)text[0]) != 0;
    int last = printer->node->input_count - 1;

    wpk_printer_output(printer);
    wpk_buf_append_text(printer->text, is_mean ? "(" : "");
    for (int i = 0; i <= last; i++) {
        if (is_call && i < last) {
            wpk_buf_printf(printer->text, "%s(", text);
        }
        wpk_printer_broadcast(printer, i);
        if (i < last) {
            wpk_buf_printf(printer->text, is_call ? ", " : " %s ", text);
        }
    }
    for (int i = 0; is_call && i < last; i++) {
        wpk_buf_append_text(printer->text, ")");
    }
    if (is_mean) {
        wpk_buf_printf(printer->text, ") / %d", last + 1);
    }
    return WPK_OK;
}

/* The attribute is the equation; it reads an input by its name and '['. */
wpk_err wpk_print_equation(struct wpk_printer *printer)
{
    const char *text = wpk_graph_text(printer->node, "text", "");
    char name[8];

    for (int i = 0; i < printer->node->input_count; i++) {
        snprintf(name, sizeof(name), i > 0 ? "X%d[" : "X[", i);
        printer->used[i] = strstr(text, name) != NULL;
    }
    wpk_buf_append_text(printer->text, text);
    return WPK_OK;
}

wpk_err wpk_print_top_k(struct wpk_printer *printer)
{
    wpk_diag_set(printer->diag, "K must be a constant");
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_print_shapeless(struct wpk_printer *printer)
{
    wpk_diag_set(printer->diag, "its shape is no constant, or it has more than 2^26 elements");
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_print_boundary(struct wpk_printer *printer)
{
    (void)printer;
    return WPK_EUNSUPPORTED;
}
