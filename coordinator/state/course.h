/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a search: how long it goes on, and what phase it is in. */
#ifndef WPK_COORDINATOR_STATE_COURSE_H
#define WPK_COORDINATOR_STATE_COURSE_H

struct wpk_coordinator;
struct wpk_search;

/* Let the operators that were bound to the search join it, and go on to its next phase if this one
 * is over. For settle.c. */
void wpk_course_advance(struct wpk_coordinator *c, struct wpk_search *search);

#endif
