/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a search: operators that join it, how long it goes on, and what phase it is in.
 *
 *     OPENING ──▶ SEARCHING ──▶ FINALS ──▶ VERIFYING ──▶ STORING ──▶ STORED ──▶ DONE, FAILED
 *                    PLAIN ──────────────────────────────────────────────────▶ DONE, FAILED
 *
 * With one contender there is no final, and what a vendor wins is not verified: those phases are
 * left out. A winner that is revoked while it is stored leads from STORED back to FINALS. An ended
 * search goes on in SEARCHING for an operator with a larger budget, and in PLAIN for one that only
 * lacks the plain kernel. */
#include "coordinator/state/search.h"

#include "coordinator/state/budget.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/final.h"
#include "coordinator/state/job.h"
#include "coordinator/state/model.h"
#include "coordinator/state/table.h"

#include <stdio.h>

static void update_budget(struct wpk_search *search)
{
    search->candidates = 0;
    search->time_ns = 0;
    for (const struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        if (wpk_phase_ended(op->phase) || op->job->state == WPK_JOB_PAUSED) {
            continue;
        }
        /* what is good enough for a job asks for nothing more */
        uint32_t budget = wpk_share_budget(op);
        uint32_t wanted = wpk_until_holds(search, op->job->until) && search->ask_count < budget
                              ? search->ask_count
                              : budget;
        if (wanted > search->candidates) {
            search->candidates = wanted;
        }
        if (op->job->time_ns > search->time_ns) {
            search->time_ns = op->job->time_ns;
        }
    }
}

/* True if the last result was reached with this job's full budget. */
static bool is_enough(const struct wpk_search *search, const struct wpk_job_op_state *op)
{
    const struct wpk_job_entry *job = op->job;
    return (search->ended_asks >= wpk_share_budget(op) && wpk_share_is_whole(op)) ||
           search->elapsed_ns >= job->time_ns ||
           (search->exhausted && search->ended_asks == search->ask_count) ||
           (search->ended_asks > 0 && wpk_until_holds(search, job->until));
}

/* ---- phases */

/* `concluded`: there is a result; else it goes on, or cannot. */
static void set_phase(struct wpk_coordinator *c, struct wpk_search *search,
                      enum wpk_search_phase phase, const char *reason, bool concluded)
{
    enum wpk_phase shown = wpk_search_phase_shown(phase);
    bool plain_only = search->phase == WPK_SEARCH_PHASE_PLAIN;
    bool unsatisfied = false;
    search->phase = phase;
    snprintf(search->reason, sizeof search->reason, "%s", reason);
    if (wpk_phase_ended(shown)) {
        wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
    }
    for (struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        if (wpk_phase_ended(op->phase)) {
            continue;
        }
        bool joined_late = concluded && !is_enough(search, op);
        unsatisfied = unsatisfied || joined_late;
        /* A vendor's kernel may be served although no candidate works. */
        op->kernel_id = wpk_phase_ended(shown) && !joined_late ? search->kernel_id : 0;
        op->from_history = shown == WPK_PHASE_DONE && (!search->measured || plain_only);
        wpk_job_op_set(c, op, joined_late ? WPK_PHASE_SEARCHING : shown, joined_late ? "" : reason);
    }
    if (unsatisfied) {
        /* A job with a larger budget came while the finals went on: the search goes on for it. */
        search->phase = WPK_SEARCH_PHASE_SEARCHING;
        search->reason[0] = '\0';
    }
    update_budget(search);
}

/* The search has its result, DONE or FAILED: for those whose budget it is of. For others it goes
 * on. */
static void conclude(struct wpk_coordinator *c, struct wpk_search *search,
                     enum wpk_search_phase phase, const char *reason)
{
    set_phase(c, search, phase, reason, true);
}

/* Answer those who wait with the last result, and its plain kernel if there is one now. */
static void answer_again(struct wpk_coordinator *c, struct wpk_search *search)
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
    conclude(c, search, wpk_verdict_phase(search, reason), reason);
}

/* ---- joining */

static void join(struct wpk_coordinator *c, struct wpk_search *search, struct wpk_job_op_state *op)
{
    char reason[WPK_REASON_MAX];
    bool covered = search->kernel_id != 0 && is_enough(search, op);
    if (search->phase == WPK_SEARCH_PHASE_PLAIN && !covered) {
        answer_again(c, search); /* the others do not wait for what this one wants */
    }
    bool idle = search->phase == WPK_SEARCH_PHASE_OPENING ||
                wpk_phase_ended(wpk_search_phase_shown(search->phase));
    if (idle && covered && search->plain.item.standing == WPK_STANDING_ENDED) {
        op->kernel_id = search->kernel_id;
        op->from_history = true;
        wpk_job_op_set(c, op, wpk_search_phase_shown(wpk_verdict_phase(search, reason)), reason);
        return;
    }
    if (idle) {
        search->phase = covered ? WPK_SEARCH_PHASE_PLAIN : WPK_SEARCH_PHASE_SEARCHING;
        search->reason[0] = '\0';
    }
    wpk_job_op_set(c, op, wpk_search_phase_shown(search->phase), "");
}

/* The operators that were bound to it. */
static void let_join(struct wpk_coordinator *c, struct wpk_search *search)
{
    for (struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        if (op->phase != WPK_PHASE_WAITING) {
            continue;
        }
        if (wpk_search_is_broken(search)) {
            wpk_job_op_set(c, op, WPK_PHASE_FAILED, search->reason);
        } else {
            join(c, search, op);
        }
    }
}

/* ---- the end */

static bool vendors_ended(const struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        if (search->vendors[i].standing != WPK_STANDING_ENDED) {
            return false;
        }
    }
    return true;
}

/* True if the search is over. Once time is up, asks without a lease stay open for a later job. */
static bool is_over(const struct wpk_search *search, uint64_t now_ns)
{
    if (search->asked_count > 0 || search->leased_count > 0 || !vendors_ended(search) ||
        wpk_plain_awaited(search)) {
        return false;
    }
    if (wpk_search_time_over(search, now_ns)) {
        return true;
    }
    for (const struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        if (!wpk_phase_ended(op->phase) && !wpk_share_is_whole(op)) {
            return false;
        }
    }
    bool all_ended = search->ok_count + search->failed_count == search->ask_count;
    return all_ended && (search->ask_count >= search->candidates || search->exhausted);
}

/* True if a job may end the search before its budget is spent, or give it more. */
static bool has_condition(const struct wpk_search *search)
{
    bool any = false;
    for (const struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        any = any || op->job->until[0] != '\0' || op->job->total > 0;
    }
    return any;
}

/* The next step of a search. */
enum turn {
    STAY,     /* nothing: its phase is not over */
    ANSWER,   /* the last result, for those who waited for its plain kernel */
    FINAL,    /* a final, the first or another one */
    VERIFY,   /* the verification of the next that may win, or the verdict */
    CONCLUDE, /* the kernel is stored */
};

static enum turn turn_of(const struct wpk_search *search, uint64_t now_ns)
{
    switch (search->phase) {
    case WPK_SEARCH_PHASE_PLAIN:
        /* The workers that could build it are known once an operator is worked on. */
        return search->candidates > 0 && search->claims != NULL && !wpk_plain_awaited(search)
                   ? ANSWER
                   : STAY;
    case WPK_SEARCH_PHASE_SEARCHING:
        return search->candidates > 0 && is_over(search, now_ns) ? FINAL : STAY;
    case WPK_SEARCH_PHASE_FINALS:
        if (search->final.standing == WPK_STANDING_ENDED) {
            return VERIFY;
        }
        return search->final.standing == WPK_STANDING_OPEN && wpk_final_is_outdated(search) ? FINAL
                                                                                            : STAY;
    case WPK_SEARCH_PHASE_VERIFYING:
        if (search->verify.standing == WPK_STANDING_ENDED) {
            return VERIFY;
        }
        return search->verify.standing == WPK_STANDING_OPEN && /* nobody has begun */
                       search->entries[search->verifying].rejected
                   ? VERIFY
                   : STAY;
    case WPK_SEARCH_PHASE_STORED:
        return search->winner->rejected ? FINAL : CONCLUDE; /* it is stored as revoked */
    default:
        return STAY;
    }
}

/* True: the final is to be held again. */
static bool reach_verdict(struct wpk_coordinator *c, struct wpk_search *search)
{
    char reason[WPK_REASON_MAX];
    switch (wpk_verdict_reach(c, search, reason)) {
    case WPK_VERDICT_AGAIN:
        return true;
    case WPK_VERDICT_PLAIN:
        set_phase(c, search, WPK_SEARCH_PHASE_SEARCHING, "", false); /* for that alone */
        break;
    case WPK_VERDICT_NOTHING:
        conclude(c, search, WPK_SEARCH_PHASE_FAILED, reason);
        break;
    case WPK_VERDICT_KERNEL:
        break;
    }
    return false;
}

/* The fastest of our own are tried on inputs that nobody saw before, until enough of them stand.
 * True: the final is to be held again. */
static bool verify_next(struct wpk_coordinator *c, struct wpk_search *search)
{
    uint32_t verified = wpk_final_count_verified(search);
    struct wpk_final_entry *own = wpk_verdict_fastest(search, wpk_final_is_unverified);
    wpk_timer_cancel(&c->search_timers, &search->timer);
    if (own == NULL && verified == 0 && wpk_final_has_successor(search)) {
        return true;
    }
    if (own == NULL || verified == WPK_FINAL_VERIFIED_MAX) {
        return reach_verdict(c, search);
    }
    wpk_final_try(c, search, own);
    if (search->phase != WPK_SEARCH_PHASE_VERIFYING) {
        set_phase(c, search, WPK_SEARCH_PHASE_VERIFYING, "", false);
    }
    return false;
}

/* Hold finals until a worker has to time or verify something, or there is a verdict: a rejected
 * entry makes room for another, and another search's kernel may take part. */
static void hold_final(struct wpk_coordinator *c, struct wpk_search *search)
{
    bool again = true;
    while (again) {
        wpk_final_collect(c, search);
        if (search->entry_count > 1) {
            set_phase(c, search, WPK_SEARCH_PHASE_FINALS, "", false);
            return;
        }
        again = verify_next(c, search);
    }
}

static void take_turn(struct wpk_coordinator *c, struct wpk_search *search, enum turn turn)
{
    char reason[WPK_REASON_MAX];
    switch (turn) {
    case ANSWER:
        answer_again(c, search);
        break;
    case FINAL:
        hold_final(c, search);
        break;
    case VERIFY:
        if (verify_next(c, search)) {
            hold_final(c, search);
        }
        break;
    case CONCLUDE:
        conclude(c, search, wpk_verdict_phase(search, reason), reason);
        break;
    case STAY:
        break;
    }
}

void wpk_course_advance(struct wpk_coordinator *c, struct wpk_search *search)
{
    if (search->error[0] != '\0') {
        set_phase(c, search, WPK_SEARCH_PHASE_FAILED, search->error, false);
        search->error[0] = '\0';
    }
    if (search->ops_changed && (search->id != 0 || wpk_search_is_broken(search))) {
        search->ops_changed = false;
        let_join(c, search);
        update_budget(search);
    }
    if (search->phase == WPK_SEARCH_PHASE_SEARCHING && has_condition(search)) {
        for (struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
            wpk_share_out(c, op->job);
        }
        update_budget(search); /* a result may have been good enough, or more is allotted */
    }
    wpk_heat_update(c, search);
    for (enum turn turn; (turn = turn_of(search, c->event->now_ns)) != STAY;) {
        take_turn(c, search, turn);
    }
}
