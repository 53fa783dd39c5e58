/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a model's plan from its graph, its regions and their kernels. */
#ifndef WPK_MODEL_PLAN_ASSEMBLE_H
#define WPK_MODEL_PLAN_ASSEMBLE_H

#include "common/err.h"
#include "model/region/region.h"

#include <stdint.h>

/* The model for one set of shapes of its inputs. */
struct wpk_assemble_shape {
    struct wpk_graph graph;
    struct wpk_graph_regions regions;
    int *kernel; /* owned; [regions.count] the number of a region's kernel */
};

void wpk_assemble_shape_fini(struct wpk_assemble_shape *shape);

/* A kernel, the first region that it computes, and how long one call of it took when it was
 * tuned. */
struct wpk_assemble_kernel {
    int shape;
    int region;
    struct wpk_buf object;       /* the shared object */
    char in_place[WPK_NAME_MAX]; /* its input whose memory the output may be; "": none */
    uint64_t time_ns;            /* 0: not timed */
    const char *vendor; /* the fastest library that was timed beside it; "": none; borrowed */
    uint64_t vendor_ns;
};

/* The shapes and kernels of a plan. Outputs of kernels take the memory of the inputs that they may
 * replace, if nothing needs those later. */
struct wpk_assemble_parts {
    const struct wpk_assemble_shape *shapes; /* [shape_count] */
    int shape_count;
    const struct wpk_assemble_kernel *kernels; /* [kernel_count] */
    int kernel_count;
    int threads;
    const char *device; /* its class */
};

/* Append the plan file. Equal constants are there once.
 *
 *   errors  WPK_ERANGE more than the limits of schema/model_plan.h; WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_assemble_plan(const struct wpk_assemble_parts *parts,
                                         struct wpk_buf *out, struct wpk_diag *diag);

/* Offsets of values in one block of memory: values with overlapping lifetimes do not overlap. */

struct wpk_placement {
    int64_t size;   /* bytes, a multiple of the alignment that the caller wants */
    int first;      /* the step that writes it */
    int last;       /* the last step that reads it; >= first */
    int64_t offset; /* set by wpk_placement_solve */
};

/* Set the offsets: the largest value first, each at the lowest place that is free while it lives.
 *
 *   shape   list [count]
 *   unit    returns the bytes of the block in *size
 *   errors  WPK_ENOMEM
 */
void wpk_placement_solve(struct wpk_placement *list, int count, int64_t *size);

#endif
