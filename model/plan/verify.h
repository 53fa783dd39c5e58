/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a plan's outputs with those of its model in f64. */
#ifndef WPK_MODEL_PLAN_VERIFY_H
#define WPK_MODEL_PLAN_VERIFY_H

#include "model/plan/check_plan.h"
#include "model/plan/model_file.h"

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
