/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of models that read a sequence step by step and keep a state. */
#ifndef WPK_GRAPH_EXPAND_STATE_H
#define WPK_GRAPH_EXPAND_STATE_H

#include "graph/expansion.h"

/*   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_expand_causal_conv(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_flex_attention(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_linear_attention(struct wpk_expansion *e);

#endif
