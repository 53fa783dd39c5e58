/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning of a model in rounds, each a job of some of its operators:
 *
 *     one candidate of each, the heaviest first ──▶ the others ──▶ places ──▶ done
 *                (if there is a limit of time)
 *                        │                           │               │
 *                        └──── time is over, Ctrl-C ─┴───────────────┴──▶ the rest: one candidate
 *
 * A place is an operator that differs from another one in what is around its tensors in memory. It
 * is not searched: it takes the best schedules of the other one, which are verified and timed as
 * any candidate. With several threads, short operators are tuned for one thread, too, and take the
 * faster form. */
#ifndef WPK_MODEL_PLAN_TUNE_ROUNDS_H
#define WPK_MODEL_PLAN_TUNE_ROUNDS_H

#include "model/plan/tune_model.h"

#define WPK_TUNE_ROUNDS_MAX 7

struct wpk_tune_rounds_options {
    const struct wpk_tune_model *model;
    const struct wpk_job *job; /* an operator for each kernel of the model */
    const struct wpk_tune_source *source;
    bool search_places; /* as all others */
    uint64_t until_ns;  /* of the system's clock: when the last round begins; 0: any time */
};

/* The answer of a job. */
struct wpk_tune_round {
    struct wpk_arena arena;
    struct wpk_api_job job;
};

/* = {0} is empty. */
struct wpk_tune_rounds {
    struct wpk_tune_round rounds[WPK_TUNE_ROUNDS_MAX]; /* [round_count] */
    int round_count;
    struct wpk_api_kernel *kernels; /* owned; [kernel_count] of the model; name NULL: none */
    bool *tried;                    /* owned; likewise: some candidate was measured */
    bool *failed;                   /* owned; likewise: some candidate failed */
    struct wpk_api_job found;       /* all together: the kernels that there are, the seconds */
    bool interrupted;
    bool is_cut; /* by Ctrl-C, or the time was over */
};

/* Tune the model. After Ctrl-C, or when the time is over, each operator without a kernel gets one
 * candidate.
 *   owns    caller calls wpk_tune_rounds_fini, after failures too; `found` is part of it
 *   errors  those of the source; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_tune_rounds_run(const struct wpk_tune_rounds_options *options,
                                           struct wpk_tune_rounds *out, struct wpk_diag *diag);
void wpk_tune_rounds_fini(struct wpk_tune_rounds *rounds);

/* True if candidates of kernel `k` were tried, and none of them works. */
bool wpk_tune_rounds_is_hopeless(const struct wpk_tune_rounds *rounds, int k);

#endif
