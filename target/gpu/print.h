/* SPDX-License-Identifier: Apache-2.0 */
/* The back end `cuda`: prints a schedule's nest as kernels in CUDA C, for NVRTC.
 *
 * Each definition of a stage that is computed before everything is a launch of its own; what is
 * computed inside its loops is part of it. Launches run one after another: a plan lists them as
 * data, so that no code runs on the host. */
#ifndef WPK_TARGET_GPU_PRINT_H
#define WPK_TARGET_GPU_PRINT_H

#include "nest/schedule.h"
#include "schema/launch_plan.h"

/* A launch, whose blocks and threads have one dimension. */
struct wpk_cuda_step {
    char entry[WPK_LAUNCH_ENTRY_MAX]; /* the function's name */
    int64_t blocks, threads;          /* >= 1 */
    int64_t shared_bytes;             /* that the function declares */
    /* The arguments that it accesses, by number in the plan: a pointer to element 0 of each. Number
     * argument_count is the memory for parts, and the next one are the tickets. */
    uint8_t taken[WPK_TENSORS_MAX + 2];
    int taken_count;
};

struct wpk_cuda_plan {
    struct wpk_cuda_step step[WPK_LAUNCHES_MAX];
    int step_count;
    int argument[WPK_TENSORS_MAX]; /* tensors of the schedule's main program: what is read, what is
                                      written, and intermediate tensors between launches */
    enum wpk_dtype
        dtype[WPK_TENSORS_MAX]; /* in memory: an intermediate sum has its accumulator's */
    int argument_count;
    /* Blocks leave parts of a reduction to each other: bytes of memory for the parts, and tickets
     * of 32 bits, which are 0 before and after each launch. 0: none do */
    int64_t part_bytes, ticket_count;
};

/* Write the module, whose functions are SYMBOL_0, SYMBOL_1, ..., and its plan.
 *   errors  WPK_EUNSUPPORTED the nest cannot be printed, with the reason; WPK_ENOMEM */
wpk_err wpk_cuda_print(const struct wpk_schedule *schedule, const char *symbol, struct wpk_buf *out,
                       struct wpk_cuda_plan *plan, struct wpk_diag *diag);
/* True if nothing in the nest's words keeps wpk_cuda_print() from printing it; else the reason is
 * in `diag`. */
bool wpk_cuda_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);

#endif
