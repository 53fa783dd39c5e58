/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plan step by step: each step's outputs, at some points, against the interpreter on the
 * data that flowed through the step. So a kernel that is wrong on real data is found with its
 * nodes, and so is a value that another one overwrote. */
#ifndef WPK_MODEL_PLAN_CHECK_PLAN_H
#define WPK_MODEL_PLAN_CHECK_PLAN_H

#include "model/plan/model_file.h"
#include "runtime/wpk.h"

#define WPK_CHECK_PLAN_POINTS_MAX 512 /* of a step's output */

/* An open plan with all its tensors, in the order of the model. */
struct wpk_plan_call {
    const struct wpk_model *model;
    size_t shape; /* its set of shapes */
    struct wpk_model_context *context;
    const struct wpk_tensor_data *inputs;
    size_t input_count;
    const struct wpk_tensor_data *outputs;
    size_t output_count;
};

struct wpk_check_plan {
    int steps;              /* that were compared: those with a kernel */
    int64_t points;         /* of all of them */
    double times_direct;    /* the largest error ÷ that of direct evaluation; of class `fast` */
    const char *worst_node; /* where that is; borrowed from the model */
};

/* Run the plan once in an arena of NaN, and compare.
 *   errors  WPK_EMISMATCH a step is wrong: `diag` names its nodes; those of wpk_model_watch and
 *           wpk_check */
WPK_MUST_CHECK wpk_err wpk_check_plan(const struct wpk_plan_call *call, struct wpk_check_plan *out,
                                      struct wpk_diag *diag);

/* Compares a plan's outputs with those of its model in f64. */

#define WPK_VERIFY_TOLERANCE 1e-4 /* of an output's largest element, if the model is no worse */

/* Interpret the model on the inputs of a call that has run, and compare the outputs.
 *
 *   shape   graph: the model with the inputs' shapes; differences [call->output_count]: the largest
 *           one of each output, as a part of its largest finite element
 *   errors  WPK_EMISMATCH the model has other inputs or outputs, or an output differs by more than
 *           WPK_VERIFY_TOLERANCE, and by more than four times the error of direct evaluation; those
 *           of wpk_graph_interpret */
WPK_MUST_CHECK wpk_err wpk_verify_plan(const struct wpk_graph *graph,
                                       const struct wpk_plan_call *call, double *differences,
                                       struct wpk_diag *diag);

/* The same with the model of a file, in the shapes of the call's inputs; other shapes and constants
 * are those of `fixing`.
 *   errors  those of wpk_model_file_read, with `problems` as there */
WPK_MUST_CHECK wpk_err wpk_verify_plan_file(const char *path, const struct wpk_model_fixing *fixing,
                                            const struct wpk_plan_call *call, double *differences,
                                            struct wpk_buf *problems, struct wpk_diag *diag);

#endif
