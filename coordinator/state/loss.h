/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that their worker loses: it is gone, stuck, or not trusted any more. */
#ifndef WPK_COORDINATOR_STATE_LOSS_H
#define WPK_COORDINATOR_STATE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_coordinator;
struct wpk_worker;

/* The worker says that it runs this lease now; 0: none. What it has run for too long is taken back
 * with all that waits behind it. */
void wpk_loss_watch(struct wpk_coordinator *c, struct wpk_worker *worker, uint64_t running);
/* Take all leases back. If the worker died, what it was running is to blame. */
void wpk_loss_return_all(struct wpk_coordinator *c, struct wpk_worker *worker, bool died);

#endif
