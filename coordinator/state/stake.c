/* SPDX-License-Identifier: Apache-2.0 */
/* Stakes: for whom a search is worked on, and with which rank. An owner's stakes in a pool that
 * there is work for lie in an array, sorted: the first is found at once, one more is put in after
 * O(log n) comparisons and one move of at most a few kilobytes. */
#include "coordinator/state/stake.h"

#include "coordinator/state/account.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/group.h"
#include "coordinator/state/grow.h"
#include "coordinator/state/job.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- seats: the ready stakes of an owner, sorted */

static struct wpk_seat *seat_get(struct wpk_pool *pool, struct wpk_owner *owner)
{
    struct wpk_seat *seat = pool->seats;
    while (seat != NULL && seat->account->owner != owner) {
        seat = seat->next;
    }
    if (seat == NULL) {
        seat = calloc(1, sizeof *seat);
        WPK_ASSERT(seat != NULL);
        seat->account = wpk_account_get(pool->kind, owner);
        seat->pool = pool;
        seat->next = pool->seats;
        pool->seats = seat;
    }
    return seat;
}

static void seat_drop(struct wpk_coordinator *c, struct wpk_seat *seat)
{
    struct wpk_pool *pool = seat->pool;
    struct wpk_seat **at = &pool->seats;
    WPK_ASSERT(seat->ready_count == 0);
    while (*at != seat) {
        at = &(*at)->next;
    }
    *at = seat->next;
    free(seat->ready);
    free(seat);
    if (pool->seats == NULL) {
        wpk_pool_drop(c, pool);
    }
}

bool wpk_stake_before(const struct wpk_stake *a, const struct wpk_stake *b)
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

/* Where the stake is in its seat's array, or would be. */
static uint32_t find_ready(const struct wpk_seat *seat, const struct wpk_stake *stake)
{
    uint32_t low = 0;
    uint32_t high = seat->ready_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (wpk_stake_before(seat->ready[middle], stake)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void pool_set_ready(struct wpk_pool *pool, struct wpk_seat *seat)
{
    pool->ready =
        wpk_grow(pool->ready, pool->ready_count, &pool->ready_capacity, sizeof(struct wpk_seat *));
    seat->place = pool->ready_count;
    pool->ready[pool->ready_count++] = seat;
}

static void pool_clear_ready(struct wpk_pool *pool, struct wpk_seat *seat)
{
    pool->ready[seat->place] = pool->ready[--pool->ready_count];
    pool->ready[seat->place]->place = seat->place;
}

static void set_ready(struct wpk_coordinator *c, struct wpk_stake *stake, bool ready)
{
    struct wpk_seat *seat = stake->seat;
    uint32_t at = find_ready(seat, stake);
    if (ready && !stake->ready) {
        seat->ready = wpk_grow(seat->ready, seat->ready_count, &seat->ready_capacity,
                               sizeof(struct wpk_stake *));
        memmove(&seat->ready[at + 1], &seat->ready[at],
                (seat->ready_count - at) * sizeof(struct wpk_stake *));
        seat->ready[at] = stake;
        if (seat->ready_count++ == 0) {
            pool_set_ready(seat->pool, seat);
        }
    } else if (!ready && stake->ready) {
        WPK_ASSERT(seat->ready[at] == stake);
        seat->ready_count--;
        memmove(&seat->ready[at], &seat->ready[at + 1],
                (seat->ready_count - at) * sizeof(struct wpk_stake *));
        if (seat->ready_count == 0) {
            pool_clear_ready(seat->pool, seat);
        }
    }
    stake->ready = ready;
    if (ready) {
        wpk_pool_mark(c, seat->pool);
    }
}

/* An owner is idle when there is no work of his, and none is under way from a strategy; and when
 * there is nobody who could do it: he does not wait for the others then. */
static void set_backlogged(struct wpk_stake *stake, bool backlogged)
{
    if (backlogged && !stake->backlogged) {
        wpk_fair_ready(stake->seat->account, stake->search);
    } else if (!backlogged && stake->backlogged) {
        wpk_fair_unready(stake->seat->account);
    }
    stake->backlogged = backlogged;
}

static void update(struct wpk_coordinator *c, struct wpk_stake *stake)
{
    const struct wpk_search *search = stake->search;
    bool ready = (search->ready & (1U << stake->seat->pool->stage)) != 0;
    set_backlogged(stake, stake->seat->pool->served_count > 0 && (ready || search->asking));
    set_ready(c, stake, ready);
}

void wpk_stake_set_ready(struct wpk_coordinator *c, struct wpk_search *search, unsigned ready)
{
    search->ready = ready;
    for (struct wpk_stake *stake = search->stakes; stake != NULL; stake = stake->search_next) {
        update(c, stake);
    }
}

void wpk_stake_served(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->search_count && c->served_changed; i++) {
        struct wpk_stake *stake = c->searches[i]->stakes;
        for (; stake != NULL; stake = stake->search_next) {
            if (stake->seat->pool->served_changed) {
                update(c, stake);
            }
        }
    }
    for (uint32_t i = 0; i < c->pool_count && c->served_changed; i++) {
        c->pools[i]->served_changed = false;
    }
    c->served_changed = false;
}

/* ---- stakes */

static void set_rank(struct wpk_coordinator *c, struct wpk_stake *stake,
                     const struct wpk_job_op_state *op)
{
    bool ready = stake->ready;
    set_ready(c, stake, false);
    stake->priority = op->job->priority;
    stake->job_number = op->job->number;
    stake->position = (uint32_t)(op - op->job->ops);
    set_ready(c, stake, ready);
}

static bool op_before(const struct wpk_job_op_state *op, const struct wpk_stake *stake)
{
    struct wpk_stake own = {.search = stake->search,
                            .priority = op->job->priority,
                            .job_number = op->job->number,
                            .position = (uint32_t)(op - op->job->ops)};
    return wpk_stake_before(&own, stake);
}

static struct wpk_stake *stake_get(struct wpk_coordinator *c, struct wpk_job_op_state *op,
                                   enum wpk_pool_stage stage)
{
    struct wpk_search *search = op->search;
    struct wpk_seat *seat = seat_get(wpk_pool_get(c, search, op->job, stage), op->job->account);
    struct wpk_stake *stake = search->stakes;
    while (stake != NULL && stake->seat != seat) {
        stake = stake->search_next;
    }
    if (stake == NULL) {
        stake = calloc(1, sizeof *stake);
        WPK_ASSERT(stake != NULL);
        stake->search = search;
        stake->seat = seat;
        stake->search_next = search->stakes;
        search->stakes = stake;
        seat->stake_count++;
        set_rank(c, stake, op);
    }
    return stake;
}

void wpk_stake_add(struct wpk_coordinator *c, struct wpk_job_op_state *op)
{
    for (int stage = 0; stage < WPK_POOL_STAGES; stage++) {
        WPK_ASSERT(op->stakes[stage] == NULL);
        struct wpk_stake *stake = stake_get(c, op, (enum wpk_pool_stage)stage);
        op->stakes[stage] = stake;
        stake->op_count++;
        if (op_before(op, stake)) {
            set_rank(c, stake, op);
        }
        update(c, stake);
    }
}

/* The first of the operators that it still stands for gives it its rank. */
static void rank_again(struct wpk_coordinator *c, struct wpk_stake *stake)
{
    const struct wpk_job_op_state *first = NULL;
    for (struct wpk_job_op_state *op = stake->search->ops; op != NULL; op = op->next) {
        if (op->stakes[stake->seat->pool->stage] != stake) {
            continue;
        }
        if (first == NULL) {
            first = op;
            set_rank(c, stake, op);
        } else if (op_before(op, stake)) {
            set_rank(c, stake, op);
        }
    }
}

static void stake_free(struct wpk_coordinator *c, struct wpk_stake *stake)
{
    struct wpk_stake **at = &stake->search->stakes;
    set_ready(c, stake, false);
    set_backlogged(stake, false);
    while (*at != stake) {
        at = &(*at)->search_next;
    }
    *at = stake->search_next;
    if (--stake->seat->stake_count == 0) {
        seat_drop(c, stake->seat);
    }
    free(stake);
}

void wpk_stake_drop(struct wpk_coordinator *c, struct wpk_job_op_state *op)
{
    for (int stage = 0; stage < WPK_POOL_STAGES; stage++) {
        struct wpk_stake *stake = op->stakes[stage];
        if (stake == NULL) {
            continue;
        }
        op->stakes[stage] = NULL;
        if (--stake->op_count == 0) {
            stake_free(c, stake);
        } else {
            rank_again(c, stake);
        }
    }
}
