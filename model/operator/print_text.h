/* SPDX-License-Identifier: Apache-2.0 */
/* Equations by the text of an operator (operator.h). */
#ifndef WPK_MODEL_OPERATOR_PRINT_TEXT_H
#define WPK_MODEL_OPERATOR_PRINT_TEXT_H

#include "model/operator/printer.h"

/* Append the equation by the operator's text.   errors  those of wpk_operator_reduced */
WPK_MUST_CHECK wpk_err wpk_print_text(struct wpk_printer *printer);

#endif
