/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#ifndef WPK_MODEL_OPERATOR_OP_LOSS_H
#define WPK_MODEL_OPERATOR_OP_LOSS_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_loss(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_loss(struct wpk_printer *printer);

#endif
