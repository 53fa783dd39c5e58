/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that read an image between its elements, at places that are data. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_SAMPLE_H
#define WPK_MODEL_OPERATOR_EXPAND_SAMPLE_H

#include "model/operator/expansion.h"

/*   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_expand_grid_sample(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_roi_align(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_deform_conv(struct wpk_expansion *e);

#endif
