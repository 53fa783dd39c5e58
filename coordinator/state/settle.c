/* SPDX-License-Identifier: Apache-2.0 */
/* The consequences of an event. The event's handler has changed its own noun and marked it
 * (mark.h); nothing below this file calls upwards. The order is:
 *
 *  1. Searches. The operators that were bound to a marked search join it; then it goes on to its
 *     next phase if this one is over. The operators of the search get the phase, and may end with
 *     it.
 *  2. Operators. A job ends with its last operator.
 *  3. Binding. A job's next operators take the place of those that have ended: each is bound to a
 *     search, which is marked. Steps 1 to 3 are repeated until no search is marked. This ends: each
 *     round has ended or bound an operator, and a step opens a limited number of searches.
 *  4. Ready queues. The claims in a marked search become ready in the stages that it has work for
 *     now. No phase changes any more.
 *  5. Dispatch. Polls that wait are given work from the ready queues. A lease changes what its own
 *     search is ready for, and nothing else.
 *  6. Release. Jobs whose end is durable and searches that nobody needs leave the state. A search's
 *     memory stays until the next step, because effects of this one point to it.
 *
 * Marks are not stored: after a restart each job is restored, and each search opened, by an event
 * that marks it. */
#include "coordinator/state/settle.h"

#include "coordinator/state/bind.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/course.h"
#include "coordinator/state/dispatch.h"
#include "coordinator/state/job.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/ready.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"

static void settle_searches(struct wpk_coordinator *c)
{
    struct wpk_search *search;
    while ((search = wpk_mark_take(&c->marked_searches[WPK_SEARCH_COURSE])) != NULL) {
        wpk_course_advance(c, search);
        wpk_mark_search(c, search, WPK_SEARCH_READY);
    }
}

static void settle_operators(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job;
    while ((job = wpk_mark_take(&c->marked_jobs[WPK_JOB_OPERATORS])) != NULL) {
        wpk_job_end_if_over(c, job);
        wpk_mark_job(c, job, WPK_JOB_BIND);
    }
}

static void settle_binding(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job;
    while ((job = wpk_mark_take(&c->marked_jobs[WPK_JOB_BIND])) != NULL) {
        wpk_bind_job(c, job);
    }
}

static void settle_ready(struct wpk_coordinator *c)
{
    struct wpk_search *search;
    wpk_claim_served(c);
    while ((search = wpk_mark_take(&c->marked_searches[WPK_SEARCH_READY])) != NULL) {
        wpk_ready_update(c, search);
        wpk_mark_search(c, search, WPK_SEARCH_RELEASE);
    }
}

static void release(struct wpk_coordinator *c)
{
    struct wpk_search *search;
    wpk_job_release(c);
    while ((search = wpk_mark_take(&c->marked_searches[WPK_SEARCH_RELEASE])) != NULL) {
        wpk_search_release(c, search);
    }
}

void wpk_settle(struct wpk_coordinator *c)
{
    do {
        settle_searches(c);
        settle_operators(c);
        settle_binding(c);
    } while (c->marked_searches[WPK_SEARCH_COURSE].first != NULL);
    settle_ready(c);
    wpk_dispatch(c);
    release(c);
    WPK_ASSERT(c->marked_searches[WPK_SEARCH_COURSE].first == NULL);
    WPK_ASSERT(c->marked_searches[WPK_SEARCH_READY].first == NULL);
}
