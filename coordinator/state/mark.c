/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/mark.h"

#include "coordinator/state/job.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"

void wpk_mark_put(struct wpk_mark_list *list, struct wpk_mark *mark, void *of)
{
    if (mark->of == NULL) {
        *mark = (struct wpk_mark){.of = of};
        *(list->last != NULL ? &list->last->next : &list->first) = mark;
        list->last = mark;
    }
}

void *wpk_mark_take(struct wpk_mark_list *list)
{
    void *of = list->first != NULL ? list->first->of : NULL;
    if (of != NULL) {
        wpk_mark_drop(list, list->first);
    }
    return of;
}

void wpk_mark_drop(struct wpk_mark_list *list, struct wpk_mark *mark)
{
    struct wpk_mark *before = NULL;
    if (mark->of == NULL) {
        return;
    }
    for (struct wpk_mark *at = list->first; at != mark; at = at->next) {
        before = at;
    }
    *(before != NULL ? &before->next : &list->first) = mark->next;
    list->last = list->last == mark ? before : list->last;
    mark->of = NULL;
}

bool wpk_mark_any(const struct wpk_mark *marks, uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        any = any || marks[i].of != NULL;
    }
    return any;
}

void wpk_mark_search(struct wpk_coordinator *c, struct wpk_search *search,
                     enum wpk_search_mark mark)
{
    wpk_mark_put(&c->marked_searches[mark], &search->marks[mark], search);
}

void wpk_mark_job(struct wpk_coordinator *c, struct wpk_job_entry *job, enum wpk_job_mark mark)
{
    wpk_mark_put(&c->marked_jobs[mark], &job->marks[mark], job);
}
