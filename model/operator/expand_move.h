/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements: by data, through a Gather, or as an equation says. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_MOVE_H
#define WPK_MODEL_OPERATOR_EXPAND_MOVE_H

#include "model/operator/expansion.h"

/*   errors  WPK_EUNSUPPORTED, WPK_EINVAL with a reason */
WPK_MUST_CHECK wpk_err wpk_expand_affine_grid(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_feature_extractor(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_col2im(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_compress(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_det(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_max_unpool(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_reverse_sequence(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_tensor_scatter(struct wpk_expansion *e);

#endif
