/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/mark.h"

#include "coordinator/state/job.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"

void wpk_mark_search(struct wpk_coordinator *c, struct wpk_search *search,
                     enum wpk_search_mark mark)
{
    struct wpk_search_list *list = &c->marked_searches[mark];
    if ((search->marks & 1U << mark) != 0) {
        return;
    }
    search->marks |= 1U << mark;
    search->mark_next[mark] = NULL;
    *(list->last != NULL ? &list->last->mark_next[mark] : &list->first) = search;
    list->last = search;
}

void wpk_mark_job(struct wpk_coordinator *c, struct wpk_job_entry *job, enum wpk_job_mark mark)
{
    struct wpk_job_list *list = &c->marked_jobs[mark];
    if ((job->marks & 1U << mark) != 0) {
        return;
    }
    job->marks |= 1U << mark;
    job->mark_next[mark] = NULL;
    *(list->last != NULL ? &list->last->mark_next[mark] : &list->first) = job;
    list->last = job;
}

struct wpk_search *wpk_mark_next_search(struct wpk_coordinator *c, enum wpk_search_mark mark)
{
    struct wpk_search_list *list = &c->marked_searches[mark];
    struct wpk_search *search = list->first;
    if (search != NULL) {
        list->first = search->mark_next[mark];
        list->last = list->first != NULL ? list->last : NULL;
        search->marks &= ~(1U << mark);
    }
    return search;
}

struct wpk_job_entry *wpk_mark_next_job(struct wpk_coordinator *c, enum wpk_job_mark mark)
{
    struct wpk_job_list *list = &c->marked_jobs[mark];
    struct wpk_job_entry *job = list->first;
    if (job != NULL) {
        list->first = job->mark_next[mark];
        list->last = list->first != NULL ? list->last : NULL;
        job->marks &= ~(1U << mark);
    }
    return job;
}
