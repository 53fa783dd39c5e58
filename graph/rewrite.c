/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/rewrite.h"

#include "graph/absorb.h"
#include "graph/fold.h"
#include "graph/loop.h"
#include "graph/merge.h"
#include "graph/prune.h"
#include "graph/rule.h"

wpk_err wpk_graph_rewrite(struct wpk_graph *graph)
{
    wpk_err err = wpk_graph_fold_rest(graph);

    if (err == WPK_OK) {
        err = wpk_graph_prune(graph);
    }
    if (err == WPK_OK) {
        err = wpk_graph_absorb(graph);
    }
    if (err == WPK_OK) {
        err = wpk_graph_apply_rules(graph);
    }
    if (err == WPK_OK) {
        err = wpk_graph_merge(graph);
    }
    return err == WPK_OK ? wpk_graph_gather_loops(graph) : err;
}
