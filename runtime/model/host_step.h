/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a model's plan that plain functions compute: data decides where elements are read. */
#ifndef WPK_RUNTIME_MODEL_HOST_STEP_H
#define WPK_RUNTIME_MODEL_HOST_STEP_H

#include "schema/model_plan.h"

/* Check that the step's arguments are of the types and sizes that it reads and writes.
 *   errors  WPK_ECORRUPT */
WPK_MUST_CHECK wpk_err wpk_host_step_check(const struct wpk_model_plan_shape *plan,
                                           const struct wpk_model_plan_step *step,
                                           struct wpk_diag *diag);

/* Run a checked step.   shape  data [argument_count], inputs first, the output last; diag: with
 *           the node
 *   errors  WPK_ERANGE an index that is out of its axis, or another number of elements that are
 *           not 0 */
WPK_MUST_CHECK wpk_err wpk_host_step_run(const struct wpk_model_plan_shape *plan,
                                         const struct wpk_model_plan_step *step, void *const *data,
                                         struct wpk_diag *diag);

#endif
