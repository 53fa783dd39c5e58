/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a model's plan from its graph, its regions and their kernels. */
#ifndef WPK_CLIENT_ASSEMBLE_PLAN_H
#define WPK_CLIENT_ASSEMBLE_PLAN_H

#include "graph/region.h"
#include "schema/model_plan.h"

/* The kernel of a region, and how long one call of it took when it was tuned. */
struct wpk_assemble_kernel {
    struct wpk_buf object; /* the shared object */
    uint64_t time_ns;      /* 0: not timed */
    const char *vendor;    /* the fastest library that was timed beside it; "": none; borrowed */
    uint64_t vendor_ns;
};

/* Append the plan file.
 *
 *   shape   kernels [regions->count]
 *   errors  WPK_ERANGE more than the limits of schema/model_plan.h; WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_assemble_plan(const struct wpk_graph *graph,
                                         const struct wpk_graph_regions *regions,
                                         const struct wpk_assemble_kernel *kernels, int threads,
                                         const char *device, struct wpk_buf *out,
                                         struct wpk_diag *diag);

#endif
