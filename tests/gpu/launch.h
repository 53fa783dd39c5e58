/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an entry of a module over a grid: block after block, each of whose warps runs until it waits
 * at a barrier or ends. */
#ifndef WPK_TESTS_GPU_LAUNCH_H
#define WPK_TESTS_GPU_LAUNCH_H

#include "tests/gpu/block.h"

/* The order of the blocks, and of the warps of a block: nothing may depend on it. */
enum wpk_launch_order {
    WPK_LAUNCH_ASCENDING,
    WPK_LAUNCH_DESCENDING,
    WPK_LAUNCH_MIXED, /* the odd ones first */
    WPK_LAUNCH_ORDERS
};

struct wpk_launch {
    const struct wpk_ptx *ptx; /* whose entry it is */
    const struct wpk_ptx_entry *entry;
    uint32_t grid[3], block[3]; /* x, y, z; blocks and threads */
    uint32_t shared_size;       /* bytes, beside those that the entry has */
    const void *parameters;     /* entry->parameter_size bytes */
    struct wpk_device_memory *memory; /* notes what blocks access */
    struct wpk_traffic *traffic; /* is added to; may be NULL */
    enum wpk_launch_order order;
    uint64_t steps_max; /* warp instructions of one block; 0: WPK_LAUNCH_STEPS_MAX */
};

#define WPK_LAUNCH_STEPS_MAX ((uint64_t)1 << 32)
#define WPK_LAUNCH_SHARED_MAX ((uint32_t)227 << 10) /* bytes a block may have */

/* Run all blocks, or those before the first fault. `counts` is added to.
 *
 *   errors  WPK_EINVAL: sizes that no device has, or more threads than the entry allows;
 *           WPK_ENOMEM; a fault is no error: report->fault says which one, if any */
WPK_MUST_CHECK wpk_err wpk_launch_run(const struct wpk_launch *launch,
                                      struct wpk_launch_counts *counts,
                                      struct wpk_kernel_fault_report *report);

#endif
