/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a worker gets the first work item of an owner that it can do. This file reads the
 * open work from jobs, searches and their work items, not from the owner queues that leases are
 * chosen from. */
#include "coordinator/state/asks.h"
#include "coordinator/state/final.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/state/worker_class.h"
#include "tests/sim/sim.h"
#include "tests/sim/sim_fair.h"

/* The rank of a job's operator: by priority, age, and place in the job. */
struct rank {
    const struct wpk_job_op_state *op; /* NULL: of nothing */
};

static bool comes_before(struct rank a, struct rank b)
{
    if (a.op == NULL || b.op == NULL) {
        return b.op == NULL && a.op != NULL;
    }
    const struct wpk_job_entry *of_a = a.op->job;
    const struct wpk_job_entry *of_b = b.op->job;
    if (of_a->priority != of_b->priority) {
        return of_a->priority > of_b->priority;
    }
    return of_a != of_b ? of_a->number < of_b->number : a.op < b.op;
}

/* A builder of another timing class builds for any job; the job chooses the workers that run. */
static bool can_do(const struct wpk_worker *worker, const struct wpk_search *search,
                   const struct wpk_job_entry *job, enum wpk_queue_stage stage)
{
    unsigned roles = worker->hello.roles;
    if (stage == WPK_QUEUE_BUILD && (roles & WPK_WORKER_BUILDS) == 0) {
        return false;
    }
    if ((roles & WPK_WORKER_RUNS) == 0) {
        return stage == WPK_QUEUE_BUILD && wpk_search_trusts(search, worker, WPK_STAGE_BUILD);
    }
    return wpk_search_trusts(search, worker, WPK_STAGE_RUN) &&
           wpk_worker_class_labels_cover(&worker->hello, job->labels, job->label_count);
}

/* Of the owner's operators for which the worker could do this, the first. */
static struct rank rank_of(const struct wpk_search *search, const struct wpk_owner *owner,
                           const struct wpk_worker *worker, enum wpk_queue_stage stage)
{
    struct rank best = {0};
    for (const struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        struct rank rank = {op};
        bool waits = op->claims[stage] != NULL && op->job->owner_record == owner;
        if (waits && can_do(worker, search, op->job, stage) && comes_before(rank, best)) {
            best = rank;
        }
    }
    return best;
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

/* True if an ask waits to be built, or, if `built`, to be run. */
static bool has_open_ask(const struct wpk_search *search, bool built)
{
    for (uint32_t n = search->told_count; n < search->ask_count; n++) {
        const struct wpk_work_item *ask = wpk_asks_get(search, n);
        if (ask->standing == WPK_STANDING_OPEN && (ask->built != NULL) == built) {
            return true;
        }
    }
    return false;
}

/* True if a work item of that stage is ready for the worker. An ask that the strategy has not given
 * yet is not. */
static bool has_item(const struct wpk_search *search, const struct wpk_worker *worker,
                     enum wpk_queue_stage stage, uint64_t now_ns)
{
    bool run = stage == WPK_QUEUE_RUN;
    if (!wpk_search_has_device(search)) {
        return false; /* nobody has said yet what it is to be built for */
    }
    switch (search->phase) {
    case WPK_SEARCH_PHASE_PLAIN:
        return (wpk_plain_ready(search) & 1U << stage) != 0;
    case WPK_SEARCH_PHASE_SEARCHING:
        return (wpk_plain_ready(search) & 1U << stage) != 0 || (run && has_open_vendor(search)) ||
               (!wpk_search_time_over(search, now_ns) && !wpk_anchor_waits(search) &&
                has_open_ask(search, run));
    case WPK_SEARCH_PHASE_FINALS:
        return run && search->final.standing == WPK_STANDING_OPEN;
    case WPK_SEARCH_PHASE_VERIFYING:
        return run && search->verify.standing == WPK_STANDING_OPEN &&
               !wpk_final_excludes(search, worker);
    default:
        return false;
    }
}

/* Within a search: a vendor, then the plain kernel, what was built, and what is to be built. */
static void check_order(const struct wpk_sim *sim, const struct wpk_lease *lease,
                        enum wpk_queue_stage stage)
{
    const struct wpk_search *search = lease->search;
    struct rank to_run = rank_of(search, lease->flow->owner, lease->worker, WPK_QUEUE_RUN);
    if (lease->work.kind != WPK_WORK_TRIAL || to_run.op == NULL) {
        return;
    }
    WPK_SIM_CHECK(sim, !has_open_vendor(search), "a candidate is given out before a vendor");
    WPK_SIM_CHECK(sim, wpk_plain_ready(search) >> stage != 1U,
                  "a candidate is given out before the plain kernel");
    WPK_SIM_CHECK(sim, stage == WPK_QUEUE_RUN || !has_open_ask(search, true),
                  "a candidate is given out to be built, and another waits that is");
}

void wpk_sim_check_rank(const struct wpk_sim *sim, const struct wpk_coordinator *c,
                        const struct wpk_lease *lease)
{
    const struct wpk_worker *worker = lease->worker;
    const struct wpk_owner *owner = lease->flow->owner;
    bool built = wpk_search_work_item(lease->search, lease->work)->built != NULL;
    bool may_be_built = lease->work.kind == WPK_WORK_TRIAL || lease->work.kind == WPK_WORK_PLAIN;
    enum wpk_queue_stage stage = may_be_built && !built ? WPK_QUEUE_BUILD : WPK_QUEUE_RUN;
    struct rank given = rank_of(lease->search, owner, worker, stage);
    WPK_SIM_CHECK(sim, given.op != NULL, "%s is given work that is not for him",
                  worker->hello.name);
    check_order(sim, lease, stage);
    for (uint32_t i = 0; i < c->search_count; i++) {
        const struct wpk_search *other = c->searches[i];
        for (int s = 0; other != lease->search && s < WPK_QUEUE_STAGES; s++) {
            struct rank rank = rank_of(other, owner, worker, (enum wpk_queue_stage)s);
            bool waits = comes_before(rank, given) &&
                         has_item(other, worker, (enum wpk_queue_stage)s, c->event->now_ns);
            WPK_SIM_CHECK(sim, !waits,
                          "%s/%s of %s waits, of priority %d (%d); %s is given %s/%s, of %d (%d)",
                          rank.op->job->name, rank.op->name, owner->name, rank.op->job->priority, s,
                          worker->hello.name, given.op->job->name, given.op->name,
                          given.op->job->priority, (int)stage);
        }
    }
}
