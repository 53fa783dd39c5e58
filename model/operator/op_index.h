/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose indices are data: Gather, GatherElements, GatherND, ScatterElements, ScatterND,
 * OneHot. Gathers are loads at indices that are data (ir/data_index.h). Scatters have shapes here;
 * host.h computes them. */
#ifndef WPK_MODEL_OPERATOR_OP_INDEX_H
#define WPK_MODEL_OPERATOR_OP_INDEX_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_indexed(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_indexed(struct wpk_printer *printer);

#endif
