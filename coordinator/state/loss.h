/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that a worker loses because it is gone, stuck, or not trusted any more. */
#ifndef WPK_COORDINATOR_STATE_LOSS_H
#define WPK_COORDINATOR_STATE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_coordinator;
struct wpk_worker;

/* The worker's poll names this lease as running; 0: none. If it has done so for too long, all its
 * leases are taken back. */
void wpk_loss_watch(struct wpk_coordinator *c, struct wpk_worker *worker, uint64_t running);
/* Take all leases back. If the worker died, the lease that it was running, or else its oldest one,
 * counts as an attempt; the others do not. */
void wpk_loss_return_all(struct wpk_coordinator *c, struct wpk_worker *worker, bool died);

#endif
