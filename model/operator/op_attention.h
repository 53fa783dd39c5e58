/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: softmax(Q K' scale + mask) V, with grouped heads, a cache and windows. */
#ifndef WPK_MODEL_OPERATOR_OP_ATTENTION_H
#define WPK_MODEL_OPERATOR_OP_ATTENTION_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/* Parts: the result, the keys and values with those of the cache before them, and the scores.
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_attention(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_attention(struct wpk_printer *printer);

#endif
