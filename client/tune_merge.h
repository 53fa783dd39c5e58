/* SPDX-License-Identifier: Apache-2.0 */
/* Merged reductions, tried last: two neighbouring steps that both reduce become one, at up to three
 * sites of a model, where it is faster. */
#ifndef WPK_CLIENT_TUNE_MERGE_H
#define WPK_CLIENT_TUNE_MERGE_H

#include "client/tune_rounds.h"
#include "model/region/site.h"

#define WPK_TUNE_MERGES_MAX 3

/* A site that was tried. */
struct wpk_tune_merge {
    struct wpk_graph_site site;
    struct wpk_graph_region region; /* of both steps together */
    double apart_ns;                /* both steps; of one pair */
    double merged_ns;               /* 0: it has no kernel */
    bool is_kept;
    struct wpk_diag why; /* of one without a kernel */
    struct wpk_tune_round round;
};

/* = {0} is empty. */
struct wpk_tune_merges {
    struct wpk_tune_merge list[WPK_TUNE_MERGES_MAX]; /* [count] */
    int count;
};

/* Try the sites of a tuned model of one shape whose saved bytes are worth it; the model and
 * `rounds->found` have the kernels of those that are kept. The graph has a note of each.
 *   owns    caller calls wpk_tune_merges_fini after `rounds` is used, after failures too
 *   errors  those of wpk_graph_sites_find, wpk_follow_submit and wpk_graph_site_join; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_tune_merges_try(struct wpk_tune_model *model,
                                           const struct wpk_tune_rounds_options *options,
                                           const struct wpk_job_overrides *overrides,
                                           struct wpk_session *session,
                                           struct wpk_tune_rounds *rounds,
                                           struct wpk_tune_merges *out, struct wpk_diag *diag);
void wpk_tune_merges_fini(struct wpk_tune_merges *merges);

#endif
