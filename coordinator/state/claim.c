/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: an owner's interest in a search, with a rank. The claims of an owner queue that there is
 * work for lie in a sorted array: the first one is found at once, and inserting one takes O(log n)
 * comparisons and one move of at most a few kilobytes. */
#include "coordinator/state/claim.h"

#include "coordinator/state/asks.h"
#include "coordinator/state/budget.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker_class.h"

#include <stdlib.h>
#include <string.h>

/* ---- owner queues: the ready claims of an owner, sorted */

static struct wpk_owner_queue *owner_queue_get(struct wpk_work_queue *queue,
                                               struct wpk_owner *owner)
{
    struct wpk_owner_queue *owner_queue = queue->owner_queues;
    while (owner_queue != NULL && owner_queue->flow->owner != owner) {
        owner_queue = owner_queue->next;
    }
    if (owner_queue == NULL) {
        owner_queue = WPK_DEMAND(calloc(1, sizeof *owner_queue));
        owner_queue->flow = wpk_flow_get(queue->timing, owner);
        owner_queue->queue = queue;
        owner_queue->next = queue->owner_queues;
        queue->owner_queues = owner_queue;
    }
    return owner_queue;
}

static void owner_queue_drop(struct wpk_coordinator *c, struct wpk_owner_queue *owner_queue)
{
    struct wpk_work_queue *queue = owner_queue->queue;
    struct wpk_owner_queue **at = &queue->owner_queues;
    WPK_ASSERT(owner_queue->ready_count == 0);
    while (*at != owner_queue) {
        at = &(*at)->next;
    }
    *at = owner_queue->next;
    free(owner_queue->ready);
    free(owner_queue);
    if (queue->owner_queues == NULL) {
        wpk_work_queue_drop(c, queue);
    }
}

bool wpk_claim_before(const struct wpk_claim *a, const struct wpk_claim *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    if (a->job_number != b->job_number) {
        return a->job_number < b->job_number;
    }
    if (a->position != b->position) {
        return a->position < b->position;
    }
    return a->search->handle < b->search->handle;
}

/* Where the claim is in its owner queue's array, or would be. */
static uint32_t find_ready(const struct wpk_owner_queue *owner_queue, const struct wpk_claim *claim)
{
    uint32_t low = 0;
    uint32_t high = owner_queue->ready_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (wpk_claim_before(owner_queue->ready[middle], claim)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void set_ready(struct wpk_coordinator *c, struct wpk_claim *claim, bool ready)
{
    struct wpk_owner_queue *owner_queue = claim->owner_queue;
    uint32_t at = find_ready(owner_queue, claim);
    if (ready && !claim->ready) {
        owner_queue->ready = wpk_grow(owner_queue->ready, owner_queue->ready_count,
                                      &owner_queue->ready_capacity, sizeof(struct wpk_claim *));
        memmove(&owner_queue->ready[at + 1], &owner_queue->ready[at],
                (owner_queue->ready_count - at) * sizeof(struct wpk_claim *));
        owner_queue->ready[at] = claim;
        if (owner_queue->ready_count++ == 0) {
            struct wpk_work_queue *queue = owner_queue->queue;
            queue->ready = wpk_grow(queue->ready, queue->ready_count, &queue->ready_capacity,
                                    sizeof(struct wpk_owner_queue *));
            owner_queue->place = queue->ready_count;
            queue->ready[queue->ready_count++] = owner_queue;
        }
    } else if (!ready && claim->ready) {
        WPK_ASSERT(owner_queue->ready[at] == claim);
        owner_queue->ready_count--;
        memmove(&owner_queue->ready[at], &owner_queue->ready[at + 1],
                (owner_queue->ready_count - at) * sizeof(struct wpk_claim *));
        if (owner_queue->ready_count == 0) {
            struct wpk_work_queue *queue = owner_queue->queue;
            queue->ready[owner_queue->place] = queue->ready[--queue->ready_count];
            queue->ready[owner_queue->place]->place = owner_queue->place;
        }
    }
    claim->ready = ready;
    if (ready) {
        wpk_work_queue_mark(c, owner_queue->queue);
    }
}

/* An owner is idle when there is no work of his, and none is under way from a strategy; and when
 * there is nobody who could do it: he does not wait for the others then. */
static void set_backlogged(struct wpk_claim *claim, bool backlogged)
{
    if (backlogged && !claim->backlogged) {
        wpk_fair_ready(claim->owner_queue->flow, claim->search);
    } else if (!backlogged && claim->backlogged) {
        WPK_ASSERT(claim->owner_queue->flow->ready_count > 0);
        claim->owner_queue->flow->ready_count--;
    }
    claim->backlogged = backlogged;
}

static void update(struct wpk_coordinator *c, struct wpk_claim *claim)
{
    const struct wpk_search *search = claim->search;
    bool ready = (search->ready & (1U << claim->owner_queue->queue->stage)) != 0;
    set_backlogged(claim, claim->owner_queue->queue->served_count > 0 &&
                              (ready || search->asked_count > 0));
    set_ready(c, claim, ready);
}

void wpk_claim_served(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->search_count && c->served_changed; i++) {
        struct wpk_claim *claim = c->searches[i]->claims;
        for (; claim != NULL; claim = claim->search_next) {
            if (claim->owner_queue->queue->served_changed) {
                update(c, claim);
            }
        }
    }
    for (uint32_t i = 0; i < c->queue_count && c->served_changed; i++) {
        c->queues[i]->served_changed = false;
    }
    c->served_changed = false;
}

/* ---- claims */

static void set_rank(struct wpk_coordinator *c, struct wpk_claim *claim,
                     const struct wpk_job_op_state *op)
{
    bool ready = claim->ready;
    set_ready(c, claim, false);
    claim->priority = op->job->priority;
    claim->job_number = op->job->number;
    claim->position = (uint32_t)(op - op->job->ops);
    set_ready(c, claim, ready);
}

static bool op_before(const struct wpk_job_op_state *op, const struct wpk_claim *claim)
{
    struct wpk_claim own = {.search = claim->search,
                            .priority = op->job->priority,
                            .job_number = op->job->number,
                            .position = (uint32_t)(op - op->job->ops)};
    return wpk_claim_before(&own, claim);
}

static struct wpk_claim *claim_get(struct wpk_coordinator *c, struct wpk_job_op_state *op,
                                   enum wpk_queue_stage stage)
{
    struct wpk_search *search = op->search;
    struct wpk_owner_queue *owner_queue =
        owner_queue_get(wpk_work_queue_get(c, search, op->job, stage), op->job->owner_record);
    struct wpk_claim *claim = search->claims;
    while (claim != NULL && claim->owner_queue != owner_queue) {
        claim = claim->search_next;
    }
    if (claim == NULL) {
        claim = WPK_DEMAND(calloc(1, sizeof *claim));
        claim->search = search;
        claim->owner_queue = owner_queue;
        claim->search_next = search->claims;
        search->claims = claim;
        owner_queue->claim_count++;
        set_rank(c, claim, op);
    }
    return claim;
}

void wpk_claim_add(struct wpk_coordinator *c, struct wpk_job_op_state *op)
{
    for (int stage = 0; stage < WPK_QUEUE_STAGES; stage++) {
        WPK_ASSERT(op->claims[stage] == NULL);
        struct wpk_claim *claim = claim_get(c, op, (enum wpk_queue_stage)stage);
        op->claims[stage] = claim;
        claim->op_count++;
        if (op_before(op, claim)) {
            set_rank(c, claim, op);
        }
        update(c, claim);
    }
}

/* The first of the operators that it still stands for gives it its rank. */
static void rank_again(struct wpk_coordinator *c, struct wpk_claim *claim)
{
    const struct wpk_job_op_state *first = NULL;
    for (struct wpk_job_op_state *op = claim->search->ops; op != NULL; op = op->next) {
        if (op->claims[claim->owner_queue->queue->stage] != claim) {
            continue;
        }
        if (first == NULL) {
            first = op;
            set_rank(c, claim, op);
        } else if (op_before(op, claim)) {
            set_rank(c, claim, op);
        }
    }
}

static void claim_free(struct wpk_coordinator *c, struct wpk_claim *claim)
{
    struct wpk_claim **at = &claim->search->claims;
    set_ready(c, claim, false);
    set_backlogged(claim, false);
    while (*at != claim) {
        at = &(*at)->search_next;
    }
    *at = claim->search_next;
    if (--claim->owner_queue->claim_count == 0) {
        owner_queue_drop(c, claim->owner_queue);
    }
    free(claim);
}

void wpk_claim_drop(struct wpk_coordinator *c, struct wpk_job_op_state *op)
{
    for (int stage = 0; stage < WPK_QUEUE_STAGES; stage++) {
        struct wpk_claim *claim = op->claims[stage];
        if (claim == NULL) {
            continue;
        }
        op->claims[stage] = NULL;
        if (--claim->op_count == 0) {
            claim_free(c, claim);
        } else {
            rank_again(c, claim);
        }
    }
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

static bool is_searching(const struct wpk_search *search)
{
    return wpk_search_phase_shown(search->phase) == WPK_PHASE_SEARCHING;
}

/* Stages that a worker can be given work of, or will be by the answer to an ASK. */
static unsigned stages_ready(const struct wpk_search *search, uint64_t now_ns)
{
    const unsigned run = 1U << WPK_QUEUE_RUN;
    const unsigned build = 1U << WPK_QUEUE_BUILD;
    switch (search->phase) {
    case WPK_SEARCH_PHASE_PLAIN:
        return wpk_plain_ready(search);
    case WPK_SEARCH_PHASE_SEARCHING: {
        unsigned ready = wpk_plain_ready(search) |
                         (has_open_vendor(search) || wpk_heat_is_open(search) ? run : 0);
        bool promises = search->promised_count < search->asked_count;
        if (wpk_search_time_over(search, now_ns) || wpk_anchor_waits(search)) {
            return ready;
        }
        ready |= search->built.count > 0 ? run : 0;
        return ready |
               (search->open.count > 0 || promises || wpk_search_can_ask(search, now_ns) ? build
                                                                                         : 0);
    }
    case WPK_SEARCH_PHASE_FINALS:
        return search->final.standing == WPK_STANDING_OPEN ? run : 0;
    case WPK_SEARCH_PHASE_VERIFYING:
        return search->verify.standing == WPK_STANDING_OPEN ? run : 0;
    default:
        return 0;
    }
}

void wpk_ready_update(struct wpk_coordinator *c, struct wpk_search *search)
{
    bool open = search->id != 0 && wpk_search_has_device(search);
    search->ready = open ? stages_ready(search, c->event->now_ns) : 0;
    /* Polls that wait for this work are served at the end of the step. */
    for (struct wpk_claim *claim = search->claims; claim != NULL; claim = claim->search_next) {
        update(c, claim);
    }
}

bool wpk_ready_will_run(const struct wpk_search *search)
{
    const struct wpk_claim *claim = search->claims;
    while (claim != NULL && (claim->owner_queue->queue->stage != WPK_QUEUE_RUN ||
                             claim->owner_queue->queue->served_count == 0)) {
        claim = claim->search_next;
    }
    return claim != NULL && is_searching(search);
}

bool wpk_ready_will_run_asks(const struct wpk_search *search, uint64_t now_ns)
{
    return wpk_ready_will_run(search) && search->phase == WPK_SEARCH_PHASE_SEARCHING &&
           !wpk_search_time_over(search, now_ns);
}

uint32_t wpk_ready_depth(const struct wpk_search *search)
{
    uint32_t depth = search->open.count + search->built.count;
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        depth += search->vendors[i].standing == WPK_STANDING_OPEN;
    }
    depth += is_searching(search) && wpk_plain_ready(search) != 0;
    depth +=
        search->phase == WPK_SEARCH_PHASE_FINALS && search->final.standing == WPK_STANDING_OPEN;
    depth += wpk_heat_is_open(search);
    depth +=
        search->phase == WPK_SEARCH_PHASE_VERIFYING && search->verify.standing == WPK_STANDING_OPEN;
    return depth;
}
