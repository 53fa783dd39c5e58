/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of elements are turned by an angle that depends on the row's position. */
#ifndef WPK_MODEL_OPERATOR_OP_ROTARY_H
#define WPK_MODEL_OPERATOR_OP_ROTARY_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_rotary(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_rotary(struct wpk_printer *printer);

#endif
