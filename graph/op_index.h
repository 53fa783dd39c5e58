/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose indices are data: Gather, GatherElements, GatherND, ScatterElements, ScatterND,
 * OneHot. An index of a load cannot be data, so that the load runs over the axis, and the index
 * selects: sum(k) select(I[i] == k, X[k], 0). */
#ifndef WPK_GRAPH_OP_INDEX_H
#define WPK_GRAPH_OP_INDEX_H

#include "graph/inference.h"
#include "graph/printer.h"

#define WPK_INDEX_EXTENT_MAX 4096 /* of an axis that is searched */

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_indexed(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_indexed(struct wpk_printer *printer);

#endif
