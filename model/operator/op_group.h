/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations over some of the channels: GroupNormalization and LRN. */
#ifndef WPK_MODEL_OPERATOR_OP_GROUP_H
#define WPK_MODEL_OPERATOR_OP_GROUP_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_group(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_group(struct wpk_printer *printer);

#endif
