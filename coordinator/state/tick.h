/* SPDX-License-Identifier: Apache-2.0 */
/* Time passes: whose time has come is looked at, and counters are stored. */
#ifndef WPK_COORDINATOR_STATE_TICK_H
#define WPK_COORDINATOR_STATE_TICK_H

struct wpk_coordinator;

void wpk_tick(struct wpk_coordinator *c);

#endif
