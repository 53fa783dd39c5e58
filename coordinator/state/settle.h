/* SPDX-License-Identifier: Apache-2.0 */
/* The consequences of a step's changes (settle.c). */
#ifndef WPK_COORDINATOR_STATE_SETTLE_H
#define WPK_COORDINATOR_STATE_SETTLE_H

struct wpk_coordinator;

/* Settle all that is marked, until nothing is left to do for this event. Called once a step. */
void wpk_settle(struct wpk_coordinator *c);

#endif
