/* SPDX-License-Identifier: Apache-2.0 */
/* Equations by the text of an operator (operator.h), and a few by functions of their own. */
#ifndef WPK_MODEL_OPERATOR_PRINT_TEXT_H
#define WPK_MODEL_OPERATOR_PRINT_TEXT_H

#include "model/operator/printer.h"

/* Append the equation by the operator's text.   errors  those of wpk_operator_reduced */
WPK_MUST_CHECK wpk_err wpk_print_text(struct wpk_printer *printer);

/* Those of a Clip, of any number of inputs, and the one that an attribute is.
 *   errors  WPK_EUNSUPPORTED a Clip's limit is no number of its input's type */
wpk_err wpk_print_clip(struct wpk_printer *printer);
wpk_err wpk_print_variadic(struct wpk_printer *printer);
wpk_err wpk_print_equation(struct wpk_printer *printer);

/* Nodes without an equation: a TopK without a constant K, a shape that is not known, and the
 * boundaries of a loop (loop.h), which are memory that nodes share.   errors  WPK_EUNSUPPORTED */
wpk_err wpk_print_top_k(struct wpk_printer *printer);
wpk_err wpk_print_shapeless(struct wpk_printer *printer);
wpk_err wpk_print_boundary(struct wpk_printer *printer);

#endif
