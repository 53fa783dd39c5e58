/* SPDX-License-Identifier: Apache-2.0 */
/* Constant factors and addends go into the weights of what they follow. */
#ifndef WPK_MODEL_REWRITE_ABSORB_H
#define WPK_MODEL_REWRITE_ABSORB_H

#include "model/graph.h"

/* Take out every node that computes factor * x + addend, element by element or channel by channel,
 * where the weights of the nodes that compute x, and their biases, can be multiplied by the factor:
 * batch normalization after a convolution, 1 / sqrt(d) after the product of Q and K. An addend
 * without a bias stays as an Add.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_absorb(struct wpk_graph *graph);

#endif
