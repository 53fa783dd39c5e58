/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that ONNX Runtime's optimizers write: several of ONNX's in one. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_FUSED_H
#define WPK_MODEL_OPERATOR_EXPAND_FUSED_H

#include "model/operator/expansion.h"

/*   source  ONNX Runtime docs/ContribOperators.md
 *   errors  WPK_EUNSUPPORTED with a reason; WPK_ENOSPC, WPK_ENOMEM */

/* FusedMatMul: transposed operands, and a factor. */
wpk_err wpk_expand_fused_matmul(struct wpk_expansion *e);
/* FusedConv and FusedGemm: an activation after it, and of a convolution an addend before that. */
wpk_err wpk_expand_fused_activation(struct wpk_expansion *e);
/* SkipLayerNormalization, SkipSimplifiedLayerNormalization: the sum of two, normalized. */
wpk_err wpk_expand_skip_norm(struct wpk_expansion *e);
/* EmbedLayerNormalization: the sum of rows of two or three tables, normalized. */
wpk_err wpk_expand_embed_norm(struct wpk_expansion *e);

#endif
