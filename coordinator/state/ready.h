/* SPDX-License-Identifier: Apache-2.0 */
/* Which stages of a search's work a worker can be given now. */
#ifndef WPK_COORDINATOR_STATE_READY_H
#define WPK_COORDINATOR_STATE_READY_H

#include <stdint.h>

struct wpk_coordinator;
struct wpk_search;

/* Note what there is to do for whom. */
void wpk_ready_update(struct wpk_coordinator *c, struct wpk_search *search);
/* Work items of the search that want a worker. */
uint32_t wpk_ready_depth(const struct wpk_search *search);

#endif
