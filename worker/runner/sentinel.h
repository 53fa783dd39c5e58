/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed workload, timed before and after each candidate. If its time changes, the machine has
 * changed (its clock frequency, another process), not the kernel. The record's log then says so; no
 * time is divided by the sentinel's. */
#ifndef WPK_WORKER_RUNNER_SENTINEL_H
#define WPK_WORKER_RUNNER_SENTINEL_H

#include <stdint.h>

/* The fastest of a few runs of some tens of microseconds each: half a chain of dependent
 * multiplications and additions, half a walk through memory that the second-level cache holds. */
uint64_t wpk_sentinel_run_ns(void);

#endif
