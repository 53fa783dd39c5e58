/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is tuned: its regions in each set of shapes, the kernels that they need, and the
 * operators of the job that finds these. */
#ifndef WPK_MODEL_PLAN_TUNE_MODEL_H
#define WPK_MODEL_PLAN_TUNE_MODEL_H

#include "model/plan/assemble.h"
#include "model/plan/model_file.h"
#include "model/plan/tune_source.h"

/* A kernel that the model needs: an operator of the job, with the same number. */
struct wpk_tune_kernel {
    int shape;
    int region;           /* of this shape; others may need it, too */
    int64_t calls;        /* in a run with this shape */
    struct wpk_cost cost; /* of one call */
    double roofline_ns;   /* of one call, as the next one; 0: not estimated */
    struct wpk_tune_expected expected;
    int instruction; /* that adds several terms of its sum, on CPUs that have it; -1: none, or the
                        job is not made yet */
    bool is_placed;  /* an operand has something around it in memory */
    int base;        /* kernel that differs in what is around its operands alone, or itself */
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
 *   shape   problems: as in wpk_model_file_read
 *   owns    caller calls wpk_tune_model_fini, after failures too
 *   errors  those of wpk_model_file_read and wpk_graph_regions_find */
WPK_MUST_CHECK wpk_err wpk_tune_model_read(const char *path, const struct wpk_model_fixing *fixing,
                                           struct wpk_tune_model *out, struct wpk_buf *problems,
                                           struct wpk_diag *diag);
void wpk_tune_model_fini(struct wpk_tune_model *model);

/* The class of kernels that a model is tuned for. */
struct wpk_tune_class {
    struct wpk_accuracy accuracy;
    bool has_conditions;            /* else `cold-constants` where constants leave the cache */
    enum wpk_conditions conditions; /* of all operators */
};

/* Make the kernels the operators of a job, whose other members stay as they are.
 *   shape   cache_bytes: of the last cache where kernels are timed; 0: not known
 *   errors  WPK_ERANGE more kernels than a job has operators; those of wpk_graph_fuse */
WPK_MUST_CHECK wpk_err wpk_tune_model_job(struct wpk_tune_model *model,
                                          const struct wpk_tune_class *wanted, int64_t cache_bytes,
                                          struct wpk_job *job, struct wpk_diag *diag);

/* Read the model once more, so that groups of nodes that are these regions become smaller ones of
 * about half the size.
 *   shape   is_hopeless [kernel_count]; *count: the groups that were cut; 0: the model is as before
 *   errors  as wpk_tune_model_read */
WPK_MUST_CHECK wpk_err wpk_tune_model_split(struct wpk_tune_model *model, const char *path,
                                            const struct wpk_model_fixing *fixing,
                                            const bool *is_hopeless, int *count,
                                            struct wpk_diag *diag);

/* Fetch the best kernel of each region, and append the plan.
 *
 *   shape   found: its kernels have the regions' names; device: the class that the plan is for if
 *           it has no kernel
 *   errors  WPK_ENOENT a region has no kernel: `diag` names its node; those of the source and of
 *           wpk_assemble_plan */
WPK_MUST_CHECK wpk_err wpk_tune_model_assemble(const struct wpk_tune_model *model,
                                               const struct wpk_tune_source *source,
                                               const struct wpk_api_job *found, int threads,
                                               struct wpk_buf *out, struct wpk_diag *diag);

#endif
