/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample in all modes. The nearest element by whole factors is an index, X[d0/2]; all
 * else is a product with a matrix for each axis, sum(k) W[d,k] * X[k], whose row d has the weights
 * of the elements around d's place in the input. */
#ifndef WPK_MODEL_OPERATOR_OP_RESIZE_H
#define WPK_MODEL_OPERATOR_OP_RESIZE_H

#include "model/operator/inference.h"
#include "model/operator/printer.h"

/*   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_infer_resize(const struct wpk_inference *in);

/* Give a node whose output's shape is known its matrices: its inputs become X and a constant for
 * each axis, or none for an axis that stays as it is. A node by whole factors stays as it is.
 *   errors  WPK_EUNSUPPORTED with a reason; WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_resize_add_matrices(struct wpk_graph *graph, int node,
                                               struct wpk_diag *diag);

wpk_err wpk_print_resize(struct wpk_printer *printer);

#endif
