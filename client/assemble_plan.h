/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a model's plan from its graph, its regions and their kernels. */
#ifndef WPK_CLIENT_ASSEMBLE_PLAN_H
#define WPK_CLIENT_ASSEMBLE_PLAN_H

#include "graph/region.h"
#include "schema/model_plan.h"

/* Append the plan file.
 *
 *   shape   kernels [regions->count]: each region's shared object
 *   errors  WPK_ERANGE more than the limits of schema/model_plan.h; WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_assemble_plan(const struct wpk_graph *graph,
                                             const struct wpk_graph_regions *regions,
                                             const struct wpk_buf *kernels, int threads,
                                             const char *device, struct wpk_buf *out,
                                             struct wpk_diag *diag);

#endif
