/* SPDX-License-Identifier: Apache-2.0 */
/* An open plan, as the files that open and run it see it. */
#ifndef WPK_RUNTIME_MODEL_H
#define WPK_RUNTIME_MODEL_H

#include "runtime/wpk.h"
#include "schema/model_plan.h"

struct wpk_kernel;

struct wpk_model {
    void *bytes; /* mapped; owned */
    size_t size;
    struct wpk_model_plan plan;
    int open_count;               /* steps that have been begun to open */
    struct wpk_kernel **kernels;  /* [step_count]; owned by the step itself, if its share is -1 */
    int *share;                   /* owned; [step_count] earlier step whose kernel it runs; -1 */
    int *latest;                  /* owned; [kernel_count] last step with a kernel of its own; -1 */
    int *previous;                /* owned; [step_count] such a step before it; -1: none */
    char *fixed;                  /* owned; what the kernels prepare */
    struct wpk_argument *inputs;  /* owned; [input_count] */
    struct wpk_argument *outputs; /* owned; [output_count] */
};

/* The step's argument of this name; NULL: none. */
const struct wpk_model_plan_argument *
wpk_model_find_argument(const struct wpk_model_plan_step *step, const char *name);

#endif
