/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: lists of the searches and jobs that a step has changed. A handler changes its own noun and
 * marks it; settle.c takes what is marked from the lists in its order. A list is first in, first
 * out, so that a seed replays a run; what is in it already stays where it is. All lists but STORE
 * are empty between two steps, so nothing of them has to be persisted. */
#ifndef WPK_COORDINATOR_STATE_MARK_H
#define WPK_COORDINATOR_STATE_MARK_H

#include <stdbool.h>

struct wpk_coordinator;
struct wpk_job_entry;
struct wpk_search;

enum wpk_search_mark {
    WPK_SEARCH_COURSE,  /* its phase may be over, or an operator wants to join it */
    WPK_SEARCH_READY,   /* the stages that there is work for may be others */
    WPK_SEARCH_RELEASE, /* it may be needed no more */
    WPK_SEARCH_STORE,   /* its counters are to be stored within a second */
    WPK_SEARCH_MARKS,
};

enum wpk_job_mark {
    WPK_JOB_OPERATORS, /* an operator has ended: it may be the last one */
    WPK_JOB_BIND,      /* an operator may be bound to a search, or worked on */
    WPK_JOB_MARKS,
};

struct wpk_search_list {
    struct wpk_search *first;
    struct wpk_search *last;
};

struct wpk_job_list {
    struct wpk_job_entry *first;
    struct wpk_job_entry *last;
};

void wpk_mark_search(struct wpk_coordinator *c, struct wpk_search *search,
                     enum wpk_search_mark mark);
void wpk_mark_job(struct wpk_coordinator *c, struct wpk_job_entry *job, enum wpk_job_mark mark);
/* Take the first out of its list; NULL: the list is empty. */
struct wpk_search *wpk_mark_next_search(struct wpk_coordinator *c, enum wpk_search_mark mark);
struct wpk_job_entry *wpk_mark_next_job(struct wpk_coordinator *c, enum wpk_job_mark mark);

#endif
