/* SPDX-License-Identifier: Apache-2.0 */
/* Equations of operators that only move elements. */
#ifndef WPK_MODEL_OPERATOR_PRINT_MOVE_H
#define WPK_MODEL_OPERATOR_PRINT_MOVE_H

#include "model/operator/printer.h"

/* Those that only move elements. Reshape, Flatten, Squeeze and Unsqueeze are one: the elements in
 * their order.   errors  WPK_EINVAL the numbers of elements differ */
WPK_MUST_CHECK wpk_err wpk_print_reshape(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_transpose(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_concat(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_pad(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_slice(struct wpk_printer *printer);

#endif
