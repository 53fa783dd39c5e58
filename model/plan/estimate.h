/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a model's kernels before they are measured: from history where it knows something of
 * them, else from the roofline. */
#ifndef WPK_MODEL_PLAN_ESTIMATE_H
#define WPK_MODEL_PLAN_ESTIMATE_H

#include "model/plan/tune_model.h"

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
