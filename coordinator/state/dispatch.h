/* SPDX-License-Identifier: Apache-2.0 */
/* Giving out work (dispatch.c). */
#ifndef WPK_COORDINATOR_STATE_DISPATCH_H
#define WPK_COORDINATOR_STATE_DISPATCH_H

struct wpk_coordinator;

/* Give work to the polls that wait for it, where there is some. */
void wpk_dispatch(struct wpk_coordinator *c);

#endif
