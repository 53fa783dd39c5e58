/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/budget.h"

#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "ir/instruction/instruction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- heats */

static bool is_due(const struct wpk_search *search, uint64_t now_ns)
{
    uint32_t ended = search->ok_count + search->failed_count;
    return search->phase == WPK_SEARCH_PHASE_SEARCHING && !search->heat && search->best_count > 2 &&
           ended >= (uint32_t)WPK_HEAT_FIRST << search->heats && ended < search->candidates &&
           !search->exhausted && !wpk_search_time_over(search, now_ns);
}

/* The best candidate that the entry is; NULL: it was rejected since. */
static struct wpk_best *find_best(struct wpk_search *search, const struct wpk_final_entry *entry)
{
    for (uint32_t i = 0; i < search->best_count; i++) {
        if (search->best[i].number == entry->number) {
            return &search->best[i];
        }
    }
    return NULL;
}

/* The mean factor from times of the heat to ratios to the anchor; 0: there is none. */
static double find_scale(struct wpk_search *search)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->entry_count; i++) {
        const struct wpk_final_entry *entry = &search->entries[i];
        const struct wpk_best *best = find_best(search, entry);
        if (entry->timed && best != NULL && best->trial.anchor_ratio > 0) {
            sum += log(best->trial.anchor_ratio / (double)entry->timing.median_ns);
            count++;
        }
    }
    return count > 0 ? exp(sum / count) : 0;
}

/* End the heat: keep the times of its entries, if it took place. */
static void end(struct wpk_search *search)
{
    double scale = find_scale(search);
    for (uint32_t i = 0; i < search->entry_count; i++) {
        const struct wpk_final_entry *entry = &search->entries[i];
        struct wpk_best *best = find_best(search, entry);
        if (entry->timed && best != NULL) {
            best->again_ns[0] = entry->timing.median_ns;
            best->again_ns[1] = entry->timing.min_ns;
            best->again_ns[2] = entry->timing.mad_ns;
            best->again_ratio = scale * (double)entry->timing.median_ns;
        }
    }
    wpk_final_fini(search);
    search->heat = false;
}

void wpk_heat_update(struct wpk_coordinator *c, struct wpk_search *search)
{
    bool outdated = search->final.standing == WPK_STANDING_OPEN && wpk_final_is_outdated(search);
    if (search->heat && (search->final.standing == WPK_STANDING_ENDED || outdated)) {
        end(search);
    }
    if (!is_due(search, c->event->now_ns)) {
        return;
    }
    wpk_final_fini(search);
    for (uint32_t i = 0; i < search->best_count && i < WPK_CONTENDERS_MAX; i++) {
        wpk_final_add_best(c, search, i);
    }
    wpk_final_number(search);
    search->heat = true;
    while (search->ok_count + search->failed_count >= (uint32_t)WPK_HEAT_FIRST << search->heats) {
        search->heats++;
    }
}

bool wpk_heat_is_open(const struct wpk_search *search)
{
    return search->heat && search->phase == WPK_SEARCH_PHASE_SEARCHING &&
           search->final.standing == WPK_STANDING_OPEN;
}

static double ratio_of(const struct wpk_best *best)
{
    return best->again_ratio > 0 ? best->again_ratio : best->trial.anchor_ratio;
}

const struct wpk_best *wpk_heat_leader(const struct wpk_search *search, uint64_t ns[3])
{
    const struct wpk_best *leader = search->best_count > 0 ? &search->best[0] : NULL;
    for (uint32_t i = 1; i < search->best_count; i++) {
        double ratio = ratio_of(&search->best[i]);
        leader = ratio > 0 && ratio < ratio_of(leader) ? &search->best[i] : leader;
    }
    if (leader != NULL && leader->again_ratio > 0) {
        memcpy(ns, leader->again_ns, sizeof leader->again_ns);
    } else if (leader != NULL) {
        ns[0] = leader->trial.median_ns;
        ns[1] = leader->trial.min_ns;
        ns[2] = leader->trial.mad_ns;
    }
    return leader;
}

#define CONVERGED_LEAST 48 /* trials before it is said that a search has converged */

/* ---- conditions that end a search early */

/* Of the fastest vendor; 0: none was timed. */
static double vendor_ns(const struct wpk_search *search)
{
    double least = 0;
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        const struct wpk_trial_summary *trial = &search->vendors[i].trial;
        double ns = trial->outcome == WPK_OUTCOME_OK ? (double)trial->median_ns : 0;
        least = ns > 0 && (least == 0 || ns < least) ? ns : least;
    }
    return least;
}

bool wpk_until_holds(const struct wpk_search *search, const char *until)
{
    uint32_t ended = search->ok_count + search->failed_count;
    const char *number = strchr(until, '=');
    double wanted = number == NULL ? 0 : strtod(number + 1, NULL);
    uint64_t leader_ns[3];
    const struct wpk_best *leader = wpk_heat_leader(search, leader_ns);
    if (until[0] == '\0' || leader == NULL || leader_ns[0] == 0) {
        return false;
    }
    double ns = (double)leader_ns[0];
    if (wpk_begins(until, "speedup=")) {
        return vendor_ns(search) >= wanted * ns;
    }
    if (wpk_begins(until, "of_peak=")) {
        double peak = search->device.peak_flops_per_s * search->key.threads *
                      wpk_operator_peak_times(search->op, search->device.cpu.flags);
        return peak > 0 && search->flops / (ns * 1e-9) >= wanted * peak;
    }
    return ended >= CONVERGED_LEAST && leader->number < ended / 2;
}

#define FIRST 8 /* candidates of each operator before any is preferred */
#define BATCH 8 /* allotted at a time */

/* ---- shares of a total budget */

void wpk_share_begin(struct wpk_job_entry *job)
{
    uint32_t each = job->total > job->op_count ? job->total / job->op_count : 1;
    for (uint32_t i = 0; i < job->op_count; i++) {
        job->ops[i].allotted = each < FIRST ? each : FIRST;
    }
}

uint32_t wpk_share_budget(const struct wpk_job_op_state *op)
{
    return op->job->total > 0 ? op->allotted : op->job->candidates;
}

/* The candidates that count as used up by an operator: the larger of its allotment and its asks. */
static uint32_t used_by(const struct wpk_job_op_state *op)
{
    uint32_t asked = op->search != NULL ? op->search->ask_count
                     : op->past != NULL ? op->past->ok_count + op->past->failed_count
                                        : 0;
    return asked > op->allotted ? asked : op->allotted;
}

static uint32_t left_of(const struct wpk_job_entry *job)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < job->op_count; i++) {
        bool is_shared = false; /* with an operator before: the candidates are the same */
        for (uint32_t k = 0; k < i && job->ops[i].search != NULL; k++) {
            is_shared = is_shared || job->ops[k].search == job->ops[i].search;
        }
        used += is_shared ? 0 : used_by(&job->ops[i]);
    }
    return used < job->total ? job->total - (uint32_t)used : 0;
}

static bool may_be_allotted(const struct wpk_job_op_state *op)
{
    const struct wpk_search *search = op->search;
    return search != NULL && op->job->state != WPK_JOB_PAUSED &&
           search->phase == WPK_SEARCH_PHASE_SEARCHING && op->phase == WPK_PHASE_SEARCHING &&
           !search->exhausted && search->elapsed_ns < op->job->time_ns &&
           used_by(op) < op->job->candidates && !wpk_until_holds(search, op->job->until);
}

bool wpk_share_is_whole(const struct wpk_job_op_state *op)
{
    return op->job->total == 0 || left_of(op->job) == 0 || !may_be_allotted(op);
}

/* The time that one more candidate is expected to save, of all calls: the time of the best, by the
 * number of candidates so far, less where the best was found long ago. +inf before the first ones
 * have ended.
 *   source  the optimistic gradient of Zheng et al., Ansor, OSDI 2020, section 6 */
static double expected_gain(const struct wpk_job_op_state *op)
{
    const struct wpk_search *search = op->search;
    double ended = (double)search->ok_count + (double)search->failed_count, calls = 0;
    for (const struct wpk_job_op_state *one = search->ops; one != NULL; one = one->next) {
        calls += one->job == op->job ? one->count : 0;
    }
    if (ended < op->allotted && op->allotted <= FIRST) {
        return HUGE_VAL;
    }
    uint64_t ns[3];
    const struct wpk_best *leader = wpk_heat_leader(search, ns);
    if (leader == NULL) {
        return 0;
    }
    double found = (double)leader->number + 1;
    return calls * (double)ns[0] * fmin(found / ended, 1) / ended;
}

void wpk_share_out(struct wpk_coordinator *c, struct wpk_job_entry *job)
{
    uint32_t left = job->total > 0 ? left_of(job) : 0;
    while (left > 0) {
        struct wpk_job_op_state *best = NULL;
        for (uint32_t i = 0; i < job->op_count; i++) {
            struct wpk_job_op_state *op = &job->ops[i];
            if (may_be_allotted(op) && (best == NULL || expected_gain(op) > expected_gain(best))) {
                best = op;
            }
        }
        if (best == NULL || best->search->ask_count < best->allotted) {
            return; /* it uses what it has first */
        }
        uint32_t used = used_by(best), most = job->candidates - used;
        uint32_t batch = left < BATCH ? left : BATCH;
        best->allotted = used + (batch < most ? batch : most);
        wpk_mark_search(c, best->search, WPK_SEARCH_COURSE);
        left = left_of(job);
        for (uint32_t i = 0; left == 0 && i < job->op_count; i++) {
            if (job->ops[i].search != NULL) { /* it may end */
                wpk_mark_search(c, job->ops[i].search, WPK_SEARCH_COURSE);
            }
        }
    }
}
