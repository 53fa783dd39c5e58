/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/operator_forms.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The type that a factor is converted to; NULL: none. */
static const char *wide_type(const struct wpk_printer *printer, int input)
{
    enum wpk_dtype dtype = printer->input[input]->dtype, wide = printer->out->dtype;

    return printer->op->output == WPK_OUTPUT_SUM && wide != dtype ? wpk_dtype_name(wide) : NULL;
}

void wpk_printer_factor(struct wpk_printer *printer, int input)
{
    const char *type = wide_type(printer, input);

    wpk_buf_printf(printer->text, "%s%sX%.0d", type != NULL ? type : "", type != NULL ? "(" : "",
                   input);
}

void wpk_printer_end_factor(struct wpk_printer *printer, int input)
{
    wpk_buf_append_text(printer->text, wide_type(printer, input) != NULL ? ")" : "");
}

const char *wpk_axis_names(int count)
{
    static const char *const names[WPK_RANK_MAX + 1] = {"",
                                                        "d0",
                                                        "d0,d1",
                                                        "d0,d1,d2",
                                                        "d0,d1,d2,d3",
                                                        "d0,d1,d2,d3,d4",
                                                        "d0,d1,d2,d3,d4,d5",
                                                        "d0,d1,d2,d3,d4,d5,d6",
                                                        "d0,d1,d2,d3,d4,d5,d6,d7",
                                                        "d0,d1,d2,d3,d4,d5,d6,d7,d8",
                                                        "d0,d1,d2,d3,d4,d5,d6,d7,d8,d9"};

    WPK_ASSERT(count >= 0 && count <= WPK_RANK_MAX);
    return names[count];
}

void wpk_printer_output(struct wpk_printer *printer)
{
    wpk_buf_printf(printer->text, "Y[%s] = ", wpk_axis_names(printer->out->rank));
}

void wpk_printer_number(struct wpk_printer *printer, double value)
{
    char text[40];

    if (isinf(value)) {
        snprintf(text, sizeof(text), "%sinf", value < 0 ? "-" : "");
    } else {
        int digits = 6;
        do {
            snprintf(text, sizeof(text), "%.*g", digits, value);
        } while (digits++ < 17 && strtod(text, NULL) != value);
    }
    wpk_buf_printf(printer->text, value < 0 ? "(%s)" : "%s", text);
}

void wpk_printer_constant(struct wpk_printer *printer, const struct wpk_graph_value *value)
{
    if (value->dtype == WPK_I64 || value->dtype == WPK_I32) {
        int64_t integer = wpk_graph_integer(value, 0);
        wpk_buf_printf(printer->text, integer < 0 ? "(%" PRId64 ")" : "%" PRId64, integer);
    } else {
        wpk_printer_number(printer, wpk_graph_element(value, 0));
    }
}

static bool is_number(const struct wpk_graph_value *value)
{
    return value->data != NULL && wpk_graph_elements(value) == 1 && value->dtype != WPK_BOOL &&
           !isnan(wpk_graph_element(value, 0));
}

static bool is_written(const struct wpk_printer *printer, int input)
{
    bool is_alone = true;

    for (int i = 0; i < printer->node->input_count; i++) {
        is_alone = is_alone && (printer->input[i] == NULL || is_number(printer->input[i]));
    }
    return !is_alone && is_number(printer->input[input]);
}

void wpk_printer_broadcast(struct wpk_printer *printer, int input)
{
    const struct wpk_graph_value *value = printer->input[input];
    const struct wpk_graph_value *out = printer->out;

    if (is_written(printer, input)) {
        wpk_printer_constant(printer, value);
        return;
    }
    wpk_buf_printf(printer->text, "X%.0d[", input);
    for (int d = 0; d < value->rank; d++) {
        int axis = out->rank - value->rank + d;
        wpk_buf_append_text(printer->text, d > 0 ? "," : "");
        if (value->extent[d] == 1 && out->extent[axis] != 1) {
            wpk_buf_append_text(printer->text, "0");
        } else {
            wpk_buf_printf(printer->text, "d%d", axis);
        }
    }
    wpk_buf_append_text(printer->text, "]");
}
