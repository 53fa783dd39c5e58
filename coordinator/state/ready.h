/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness of a search: the stages of its work that a worker can be given now. */
#ifndef WPK_COORDINATOR_STATE_READY_H
#define WPK_COORDINATOR_STATE_READY_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_coordinator;
struct wpk_search;

/* Find the stages that the search has work for now, and set them in its claims. */
void wpk_ready_update(struct wpk_coordinator *c, struct wpk_search *search);
/* True if the search goes on, and a connected worker may be given what it has to run: now or, while
 * it waits for its anchor, later. */
bool wpk_ready_will_run(const struct wpk_search *search);
/* True if the same holds for its asks, which are not run once its time is over. */
bool wpk_ready_will_run_asks(const struct wpk_search *search, uint64_t now_ns);
/* Number of the search's work items that wait for a worker. */
uint32_t wpk_ready_depth(const struct wpk_search *search);

#endif
