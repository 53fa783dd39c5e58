/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed workload, timed before and after each candidate: what changes then is the machine
 * (its clock frequency, a neighbour), not the kernel. It raises an alarm in the record's log; no
 * time is compared relative to it. */
#ifndef WPK_WORKER_SENTINEL_H
#define WPK_WORKER_SENTINEL_H

#include <stdint.h>

/* Fastest of a few runs of some tens of microseconds: half a chain of dependent multiplications and
 * additions, half a walk through memory that the second-level cache holds. */
uint64_t wpk_sentinel_run_ns(void);

#endif
