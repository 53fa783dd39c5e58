/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move blocks or borders: DepthToSpace, SpaceToDepth, Tile, CenterCropPad, and Pad's
 * modes edge, reflect and wrap. */
#ifndef WPK_MODEL_OPERATOR_OP_PLACE_H
#define WPK_MODEL_OPERATOR_OP_PLACE_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_place(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_place(struct wpk_printer *printer);

/* Of a Pad of another mode than constant. */
WPK_MUST_CHECK wpk_err wpk_print_border(struct wpk_printer *printer);

#endif
