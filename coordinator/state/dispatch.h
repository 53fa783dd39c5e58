/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch: polls that wait are given work (dispatch.c). */
#ifndef WPK_COORDINATOR_STATE_DISPATCH_H
#define WPK_COORDINATOR_STATE_DISPATCH_H

struct wpk_coordinator;

/* Give work to waiting polls of the marked work queues. Answer the poll of this step if it does not
 * want to wait any longer. */
void wpk_dispatch(struct wpk_coordinator *c);

#endif
