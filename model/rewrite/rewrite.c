/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite/rewrite.h"

#include "model/operator/loop.h"
#include "model/operator/shape.h"

wpk_err wpk_graph_rewrite(struct wpk_graph *graph)
{
    wpk_err err = wpk_graph_fold_rest(graph);

    if (err == WPK_OK) {
        err = wpk_graph_prune(graph);
    }
    if (err == WPK_OK) {
        err = wpk_graph_narrow(graph);
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
