/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code elimination: values that are not read are not computed. */
#ifndef WPK_MODEL_REWRITE_PRUNE_H
#define WPK_MODEL_REWRITE_PRUNE_H

#include "model/graph.h"

/* Take out the nodes that no output of the model depends on. Where all readers of a value take
 * parts of one axis (Slice, Split, Gather of one index), compute those parts alone: constants are
 * cut, and other operands get Slices, which go on towards the inputs. So a transformer's last layer
 * computes its first token only, if no other is read. A slice of a Concat reads its part of it.
 * Ids of nodes change.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_prune(struct wpk_graph *graph);

#endif
