/* SPDX-License-Identifier: Apache-2.0 */
/* The printer of a node's equation. Output axis a is named d<a>, a reduction axis r<a>. */
#ifndef WPK_MODEL_OPERATOR_PRINTER_H
#define WPK_MODEL_OPERATOR_PRINTER_H

#include "model/graph.h"
#include "model/operator/operator.h"

struct wpk_printer {
    const struct wpk_graph *graph;
    const struct wpk_graph_node *node;
    const struct wpk_operator *op;
    const struct wpk_graph_value *out;
    const struct wpk_graph_value *input[WPK_OPERATOR_INPUTS_MAX]; /* NULL: left out */
    bool used[WPK_OPERATOR_INPUTS_MAX]; /* the equation loads this input */
    struct wpk_buf *text;
    struct wpk_diag *diag;
};

/* Append "X", "X1", ... and note that the equation loads it. */
void wpk_printer_operand(struct wpk_printer *printer, int input);
/* Append the beginning of a factor, "X", or "i32(X" of a narrow integer whose product is summed in
 * i32; and what comes behind the factor's indices. */
void wpk_printer_factor(struct wpk_printer *printer, int input);
void wpk_printer_end_factor(struct wpk_printer *printer, int input);
/* Append "[d0,d1,...]", the output's axes. */
void wpk_printer_axes(struct wpk_printer *printer);
/* Append "Y[d0,d1,...] = ". */
void wpk_printer_output(struct wpk_printer *printer);
/* Append input number `input` broadcast to the output's axes, or its number if it is a constant of
 * one element and another operand is not. */
void wpk_printer_broadcast(struct wpk_printer *printer, int input);
/* Append the number that a constant's first element is. */
void wpk_printer_constant(struct wpk_printer *printer, const struct wpk_graph_value *value);
/* Append a number of a floating type so that it reads back as the same one. */
void wpk_printer_number(struct wpk_printer *printer, double value);

#endif
