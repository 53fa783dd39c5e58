/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites a graph to one that computes the same with less work. */
#ifndef WPK_MODEL_REWRITE_REWRITE_H
#define WPK_MODEL_REWRITE_REWRITE_H

#include "model/graph.h"

/* Leave out what no output depends on (prune.h), move constant factors into weights (absorb.h),
 * apply rules (rule.h), let nodes become one (merge.h). Ids of nodes change.
 *
 *   shape   a graph whose shapes were inferred without problems
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_rewrite(struct wpk_graph *graph);

#endif
