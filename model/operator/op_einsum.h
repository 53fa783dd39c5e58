/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: its equation is one in notation, with other names. */
#ifndef WPK_MODEL_OPERATOR_OP_EINSUM_H
#define WPK_MODEL_OPERATOR_OP_EINSUM_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_einsum(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_einsum(struct wpk_printer *printer);

#endif
