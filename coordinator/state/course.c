/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a search: how long it goes on, what phase it is in, and which stages of its work a
 * worker can be given now. */
#include "coordinator/state/course.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/job.h"
#include "coordinator/state/phase.h"
#include "coordinator/state/piece.h"
#include "coordinator/state/plain.h"
#include "coordinator/state/ready.h"
#include "coordinator/state/search.h"
#include "coordinator/state/stake.h"
#include "coordinator/state/state.h"
#include "coordinator/state/text.h"
#include "coordinator/state/verdict.h"

#include <stdio.h>

void wpk_search_update_budget(struct wpk_search *search)
{
    search->candidates = 0;
    search->time_ns = 0;
    for (const struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        if (wpk_phase_ended(op->phase) || op->job->state == WPK_JOB_PAUSED) {
            continue;
        }
        if (op->job->candidates > search->candidates) {
            search->candidates = op->job->candidates;
        }
        if (op->job->time_ns > search->time_ns) {
            search->time_ns = op->job->time_ns;
        }
    }
}

/* Does its last result come of all that the job's budget has? */
static bool is_enough(const struct wpk_search *search, const struct wpk_job_entry *job)
{
    return search->ended_asks >= job->candidates || search->elapsed_ns >= job->time_ns ||
           (search->exhausted && search->ended_asks == search->ask_count);
}

bool wpk_search_covers(const struct wpk_search *search, const struct wpk_job_entry *job)
{
    return search->kernel_id != 0 && is_enough(search, job);
}

/* `concluded`: there is a result; else it goes on, or cannot. */
static void set_phase(struct wpk_coordinator *c, struct wpk_search *search, enum wpk_phase phase,
                      const char *reason, bool concluded)
{
    bool done = phase == WPK_PHASE_DONE;
    bool unsatisfied = false;
    search->phase = phase;
    snprintf(search->reason, sizeof search->reason, "%s", reason);
    if (wpk_phase_ended(phase)) {
        wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
    }
    for (struct wpk_job_op_state *op = search->ops, *next; op != NULL; op = next) {
        next = op->next;
        if (wpk_phase_ended(op->phase)) {
            continue;
        }
        bool joined_late = concluded && !is_enough(search, op->job);
        unsatisfied = unsatisfied || joined_late;
        /* What serves though none of ours works is the vendor's. */
        op->kernel_id = wpk_phase_ended(phase) && !joined_late ? search->kernel_id : 0;
        op->from_history = done && (!search->measured || search->plain_only);
        wpk_job_op_set(c, op, joined_late ? WPK_PHASE_SEARCHING : phase, joined_late ? "" : reason);
    }
    search->plain_only = false;
    if (unsatisfied) {
        /* A job with a larger budget came while the finals went on: the search goes on for it. */
        search->phase = WPK_PHASE_SEARCHING;
        search->reason[0] = '\0';
    }
    wpk_search_update_budget(search);
    wpk_search_refresh(c, search);
}

void wpk_search_set_phase(struct wpk_coordinator *c, struct wpk_search *search,
                          enum wpk_phase phase, const char *reason)
{
    set_phase(c, search, phase, reason, false);
}

void wpk_search_conclude(struct wpk_coordinator *c, struct wpk_search *search, enum wpk_phase phase,
                         const char *reason)
{
    set_phase(c, search, phase, reason, true);
}

static bool vendors_ended(const struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        if (search->vendors[i].standing != WPK_STANDING_ENDED) {
            return false;
        }
    }
    return true;
}

/* Is the search over? Once time is up, asks that nobody has started stay open, for a later job. */
static bool is_over(const struct wpk_search *search, uint64_t now_ns)
{
    if (search->asking || search->leased_count > 0 || !vendors_ended(search) ||
        wpk_plain_awaited(search)) {
        return false;
    }
    if (wpk_search_time_over(search, now_ns)) {
        return true;
    }
    bool all_ended = search->ok_count + search->failed_count == search->ask_count;
    return all_ended && (search->ask_count >= search->candidates || search->exhausted);
}

void wpk_search_answer_again(struct wpk_coordinator *c, struct wpk_search *search)
{
    char reason[WPK_REASON_MAX];
    const struct wpk_final_entry *plain = wpk_plain_entry(search);
    if (plain != NULL) {
        struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_PLAIN);
        effect->search = search;
        effect->served = plain;
        effect->own = plain;
        effect->plain = plain;
    }
    wpk_search_conclude(c, search, wpk_verdict_phase(search, reason), reason);
}

void wpk_search_advance(struct wpk_coordinator *c, struct wpk_search *search)
{
    bool goes_on = search->phase == WPK_PHASE_SEARCHING && search->candidates > 0;
    if (goes_on && search->plain_only) {
        /* Who could build it is known once an operator is worked on. */
        if (search->stakes != NULL && !wpk_plain_awaited(search)) {
            wpk_search_answer_again(c, search);
        }
    } else if (goes_on && !search->concluding && is_over(search, c->event->now_ns)) {
        wpk_final_start(c, search);
    }
    wpk_search_refresh(c, search);
}
