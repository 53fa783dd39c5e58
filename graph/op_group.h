/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations over some of the channels: GroupNormalization and LRN. */
#ifndef WPK_GRAPH_OP_GROUP_H
#define WPK_GRAPH_OP_GROUP_H

#include "graph/inference.h"
#include "graph/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_group(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_group(struct wpk_printer *printer);

#endif
