/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite/rewrite.h"

#include "model/operator/loop.h"
#include "model/operator/shape.h"

wpk_err wpk_graph_rewrite(struct wpk_graph *graph)
{
    static wpk_err (*const steps[])(struct wpk_graph * graph) = {
        wpk_graph_fold_rest,   wpk_graph_prune, wpk_graph_narrow,      wpk_graph_absorb,
        wpk_graph_apply_rules, wpk_graph_merge, wpk_graph_gather_loops};
    wpk_err err = WPK_OK;

    for (size_t i = 0; err == WPK_OK && i < sizeof(steps) / sizeof(steps[0]); i++) {
        err = steps[i](graph);
    }
    return err;
}
