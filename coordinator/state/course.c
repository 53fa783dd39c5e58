/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a search: how long it goes on, what phase it is in, and which stages of its work a
 * worker can be given now. */
#include "coordinator/state/parts.h"

#include <stdio.h>

/* ---- the time that work of it was out */

uint64_t wpk_search_elapsed_ns(const struct wpk_search *search, uint64_t now_ns)
{
    uint64_t since =
        search->active_ns != 0 && now_ns > search->active_ns ? now_ns - search->active_ns : 0;
    return search->elapsed_ns + since;
}

bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns)
{
    return wpk_search_elapsed_ns(search, now_ns) >= search->time_ns;
}

/* ---- the course of a search */

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

static bool has_open_vendor(const struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        if (search->vendors[i].standing == WPK_STANDING_OPEN) {
            return true;
        }
    }
    return false;
}

/* Stages that a worker can be given work of, or will be by the answer to an ASK. */
static unsigned stages_ready(const struct wpk_search *search, uint64_t now_ns)
{
    const unsigned run = 1U << WPK_POOL_RUN;
    const unsigned build = 1U << WPK_POOL_BUILD;
    switch (search->phase) {
    case WPK_PHASE_SEARCHING: {
        unsigned ready = wpk_plain_ready(search);
        if (search->plain_only) {
            return ready;
        }
        ready |= has_open_vendor(search) ? run : 0;
        bool promises = search->asking && search->promised_count < search->asked_count;
        if (wpk_search_time_over(search, now_ns) || wpk_anchor_waits(search)) {
            return ready;
        }
        ready |= search->built.count > 0 ? run : 0;
        return ready |
               (search->open.count > 0 || promises || wpk_search_can_ask(search, now_ns) ? build
                                                                                         : 0);
    }
    case WPK_PHASE_FINALS:
        return search->final.standing == WPK_STANDING_OPEN ? run : 0;
    case WPK_PHASE_VERIFYING:
        return search->verify.standing == WPK_STANDING_OPEN ? run : 0;
    default:
        return 0;
    }
}

void wpk_search_refresh(struct wpk_coordinator *c, struct wpk_search *search)
{
    bool open = search->id != 0 && wpk_search_has_device(search);
    unsigned ready = open ? stages_ready(search, c->event->now_ns) : 0;
    wpk_search_set_ready(c, search, ready);
}
