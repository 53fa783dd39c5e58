/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl tune of a model: one job of its distinct regions, and a plan of the kernels found. */
#ifndef WPK_CLIENT_TUNE_MODEL_H
#define WPK_CLIENT_TUNE_MODEL_H

#include "client/assemble_plan.h"
#include "client/job_file.h"
#include "client/model_file.h"
#include "client/session.h"
#include "model/region/region.h"
#include "ir/cost.h"

#define WPK_TUNE_MODEL_CANDIDATES 3 /* of each region, unless --candidates says otherwise */
#define WPK_TUNE_MODEL_SECONDS 60

/* suffix, text: where an expected time is from (client/estimate.h) */
#define WPK_TUNE_FROM_LIST(X)                                                                      \
    X(MEASURED, "measured")                                                                        \
    X(ELSEWHERE, "elsewhere")                                                                      \
    X(NEAREST_SHAPE, "nearest_shape") X(FAMILY, "family") X(ROOFLINE, "roofline")

#define WPK_TUNE_FROM_ENUM(name, text) WPK_TUNE_FROM_##name,
enum wpk_tune_from { WPK_TUNE_FROM_LIST(WPK_TUNE_FROM_ENUM) WPK_TUNE_FROM_COUNT };

/* A kernel that the model needs: an operator of the job, with the same number. */
struct wpk_tune_kernel {
    int shape;
    int region;           /* of this shape; others may need it, too */
    int64_t calls;        /* in a run with this shape */
    struct wpk_cost cost; /* of one call */
    double roofline_ns;   /* of one call, as the next one; 0: not estimated */
    double expected_ns;
    enum wpk_tune_from expected_from;
    bool is_placed; /* an operand has something around it in memory */
    int base;       /* kernel that differs in what is around its operands alone, or itself */
};

/* = {0} is empty. */
struct wpk_tune_model {
    struct wpk_assemble_shape shapes[WPK_MODEL_PLAN_SHAPES_MAX]; /* [shape_count] */
    int shape_count;
    struct wpk_tune_kernel *kernels; /* owned; [kernel_count] */
    int kernel_count;
    char **apart; /* owned; [apart_count] names of values that no region has inside */
    int apart_count;
};

/* Read a model, for each set of shapes that `fixing` has.
 *
 *   owns    caller calls wpk_tune_model_fini, after failures too
 *   errors  those of wpk_model_file_read and wpk_graph_regions_find */
WPK_MUST_CHECK wpk_err wpk_tune_model_read(const char *path, const struct wpk_model_fixing *fixing,
                                           struct wpk_tune_model *out, struct wpk_diag *diag);
void wpk_tune_model_fini(struct wpk_tune_model *model);

/* Make the job of a model's regions.
 *   owns    caller calls wpk_job_fini; `job` is as before if the model has no regions
 *   errors  those of wpk_job_file_override; WPK_EINVAL `overrides` has layouts; WPK_ERANGE more
 *           regions than a job has operators */
WPK_MUST_CHECK wpk_err wpk_tune_model_job(struct wpk_tune_model *model,
                                          const struct wpk_job_overrides *overrides,
                                          struct wpk_job *job, struct wpk_diag *diag);

/* Read the model once more, so that groups of nodes that are these regions become smaller ones of
 * about half the size, and make the job anew.
 *   shape   is_hopeless [kernel_count]; *count: the groups that were cut; 0: the model and the job
 *           are as before
 *   errors  as wpk_tune_model_read and wpk_tune_model_job */
WPK_MUST_CHECK wpk_err wpk_tune_model_split(struct wpk_tune_model *model, const char *path,
                                            const struct wpk_model_fixing *fixing,
                                            const struct wpk_job_overrides *overrides,
                                            const bool *is_hopeless, struct wpk_job *job,
                                            int *count, struct wpk_diag *diag);

/* Make the job of one more region of the first shape.
 *   owns, errors  as wpk_tune_model_job */
WPK_MUST_CHECK wpk_err wpk_tune_model_region_job(struct wpk_tune_model *model,
                                                 const struct wpk_graph_region *region,
                                                 const struct wpk_job_overrides *overrides,
                                                 struct wpk_job *job, struct wpk_diag *diag);

/* Number the kernels of a model of one shape anew, after regions came and went. Their bases, and
 * what was expected of them, are gone.   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_tune_model_renumber(struct wpk_tune_model *model);

/* Fetch the best kernel of each region that the job found, and append the plan.
 *
 *   errors  WPK_ENOENT a region has no kernel: `diag` names its node; those of
 *           wpk_choice_file_ask, wpk_choice_file_download and wpk_assemble_plan */
WPK_MUST_CHECK wpk_err wpk_tune_model_assemble(const struct wpk_tune_model *model,
                                               struct wpk_session *session,
                                               const struct wpk_api_job *found, int threads,
                                               struct wpk_buf *out, struct wpk_diag *diag);

#endif
