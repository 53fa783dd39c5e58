/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/share.h"

#include "coordinator/state/heat.h"
#include "coordinator/state/job.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/search.h"
#include "coordinator/state/until.h"

#include <math.h>

#define FIRST 8 /* candidates of each operator before any is preferred */
#define BATCH 8 /* allotted at a time */

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
