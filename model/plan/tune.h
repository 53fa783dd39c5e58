/* SPDX-License-Identifier: Apache-2.0 */
/* Tunes a model: from its ONNX file to its plan.
 *
 *     read ──▶ job ──▶ run: estimate, rounds, smaller regions ──▶ plan: assemble, check, verify
 */
#ifndef WPK_MODEL_PLAN_TUNE_H
#define WPK_MODEL_PLAN_TUNE_H

#include "model/plan/tune_model.h"

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

#define WPK_TUNE_CANDIDATES 3 /* of each region, unless the caller says otherwise */
#define WPK_TUNE_SECONDS 60   /* of each region, likewise */

struct wpk_tune_options {
    const char *path; /* of the ONNX file */
    const struct wpk_model_fixing *fixing;
    struct wpk_tune_class wanted;
    struct wpk_tune_machine machine;
    const struct wpk_tune_source *source;
    bool search_places; /* as in struct wpk_tune_rounds_options */
    int64_t seconds;    /* of the whole tuning; 0: any */
    bool verify;        /* compare the plan with the model, however long it takes */
};

/* = {0} is empty. */
struct wpk_tune {
    struct wpk_tune_options options; /* texts are borrowed */
    struct wpk_tune_model model;
    struct wpk_job job; /* owned; everything but its operators is the caller's choice */
    struct wpk_tune_rounds rounds;
    uint64_t begun_ns;
};

/* Read the model. The kernels are known then; a model of views and of functions of libwpk alone has
 * none.
 *
 *   owns    caller calls wpk_tune_fini, after failures too
 *   errors  those of wpk_tune_model_read */
WPK_MUST_CHECK wpk_err wpk_tune_read(struct wpk_tune *tuning, struct wpk_buf *problems,
                                     struct wpk_diag *diag);
void wpk_tune_fini(struct wpk_tune *tuning);

/* Make the operators of the job, for the machine that the options name.
 *   errors  those of wpk_tune_model_job */
WPK_MUST_CHECK wpk_err wpk_tune_make_job(struct wpk_tune *tuning, struct wpk_diag *diag);

/* Tune. Regions for which every candidate fails are cut into smaller ones.
 *   shape   tuning->rounds.found: the kernels; its state is "done" if a plan can be made
 *   errors  those of wpk_tune_rounds_run and wpk_tune_model_split */
WPK_MUST_CHECK wpk_err wpk_tune_run(struct wpk_tune *tuning, struct wpk_diag *diag);

/* Append the plan. Each of its steps has been checked on drawn inputs (model/plan/check_plan.h),
 * and the whole been compared with the model where that takes less than a tenth of the tuning's
 * time, or is asked for.
 *   errors  those of wpk_tune_model_assemble, wpk_check_plan and wpk_verify_plan */
WPK_MUST_CHECK wpk_err wpk_tune_plan(struct wpk_tune *tuning, struct wpk_buf *out,
                                     struct wpk_diag *diag);

/* Times of a model's kernels before they are measured: from history where it knows something of
 * them, else from the roofline. */

/* Set `roofline_ns` and `expected` of all kernels of the model.
 *
 *     measured ──▶ elsewhere ──▶ nearest shape ──▶ family ──▶ roofline ÷ median share of the others
 *     (the first that there is; all but the last are the source's: schema/openapi.yaml, Match)
 *
 *   shape   source NULL: there is no history; `job` has an operator for each kernel
 *   errors  those of source->expect; the times are from rooflines then */
WPK_MUST_CHECK wpk_err wpk_estimate_model(const struct wpk_tune_source *source,
                                          const struct wpk_job *job,
                                          const struct wpk_tune_machine *machine,
                                          struct wpk_tune_model *model, struct wpk_diag *diag);

/* Time of a run of the model, and of how many steps it is known from where. */
struct wpk_estimate_sum {
    double ns;
    double roofline_ns;
    int64_t calls[WPK_TUNE_FROM_COUNT];
};

/* Add up the calls of one set of shapes. */
void wpk_estimate_sum(const struct wpk_tune_model *model, int shape, struct wpk_estimate_sum *out);

/* Append "measured 12, nearest shape 3". */
void wpk_estimate_print_steps(const struct wpk_estimate_sum *sum, struct wpk_buf *out);

#endif
