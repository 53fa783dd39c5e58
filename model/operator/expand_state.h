/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of models that read a sequence step by step and keep a state. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_STATE_H
#define WPK_MODEL_OPERATOR_EXPAND_STATE_H

#include "model/operator/expansion.h"

/*   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_expand_causal_conv(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_flex_attention(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_linear_attention(struct wpk_expansion *e);

#endif
