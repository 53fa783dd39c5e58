/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: lists of the searches, jobs, work queues and owners that a step has changed. A handler
 * changes its own noun and marks it; settle.c takes the marked items from the lists. A list is
 * first in, first out, so that a seed replays a run; an item that is marked again keeps its place.
 * Between two steps all lists are empty, except those of items to be stored: marks are not
 * persisted. */
#ifndef WPK_COORDINATOR_STATE_MARK_H
#define WPK_COORDINATOR_STATE_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_coordinator;
struct wpk_job_entry;
struct wpk_search;

/* An item's place in a list, embedded in the item. */
struct wpk_mark {
    void *of; /* the item, while it is in the list; else NULL */
    struct wpk_mark *next;
};

struct wpk_mark_list {
    struct wpk_mark *first;
    struct wpk_mark *last;
};

enum wpk_search_mark {
    WPK_SEARCH_COURSE,  /* its phase may be over, or an operator is to join it */
    WPK_SEARCH_READY,   /* the stages that it has work for may have changed */
    WPK_SEARCH_RELEASE, /* it may not be needed any more */
    WPK_SEARCH_STORE,   /* its counters are to be stored within a second */
    WPK_SEARCH_MARKS,
};

enum wpk_job_mark {
    WPK_JOB_OPERATORS, /* an operator has ended; the job ends if no other is open */
    WPK_JOB_BIND,      /* an operator may be bound to a search, or worked on */
    WPK_JOB_MARKS,
};

/* Put the item into the list, if it is not there. `mark`: the item's for this list. */
void wpk_mark_put(struct wpk_mark_list *list, struct wpk_mark *mark, void *of);
/* Take the first item out of the list; NULL: the list is empty. */
void *wpk_mark_take(struct wpk_mark_list *list);
/* Take this item out, if it is in the list. */
void wpk_mark_drop(struct wpk_mark_list *list, struct wpk_mark *mark);
/* True if any of these marks is in a list. */
bool wpk_mark_any(const struct wpk_mark *marks, uint32_t count);
void wpk_mark_search(struct wpk_coordinator *c, struct wpk_search *search,
                     enum wpk_search_mark mark);
void wpk_mark_job(struct wpk_coordinator *c, struct wpk_job_entry *job, enum wpk_job_mark mark);

#endif
