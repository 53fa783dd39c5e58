/* SPDX-License-Identifier: Apache-2.0 */
/* The tick: timers that are due are served, and counters are stored once a second. */
#ifndef WPK_COORDINATOR_STATE_TICK_H
#define WPK_COORDINATOR_STATE_TICK_H

struct wpk_coordinator;

void wpk_tick(struct wpk_coordinator *c);

#endif
