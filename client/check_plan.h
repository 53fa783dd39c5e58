/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plan step by step: each step's outputs, at some points, against the interpreter on the
 * data that flowed through the step. So a kernel that is wrong on real data is found with its
 * nodes, and so is a value that another one overwrote. */
#ifndef WPK_CLIENT_CHECK_PLAN_H
#define WPK_CLIENT_CHECK_PLAN_H

#include "client/run_model.h"

#define WPK_CHECK_PLAN_POINTS_MAX 512 /* of a step's output */

struct wpk_check_plan {
    int steps;              /* that were compared: those with a kernel */
    int64_t points;         /* of all of them */
    double times_direct;    /* the largest error ÷ that of direct evaluation; of class `fast` */
    const char *worst_node; /* where that is; borrowed from the model */
};

/* Run the plan once in an arena of NaN, and compare.
 *   errors  WPK_EMISMATCH a step is wrong: `diag` names its nodes; those of wpk_model_watch and
 *           wpk_run_check */
WPK_MUST_CHECK wpk_err wpk_check_plan(const struct wpk_run_model_call *call,
                                      struct wpk_check_plan *out, struct wpk_diag *diag);

#endif
