/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/demand.h"

#include "coordinator/state/budget.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/search.h"

#include <string.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The trials of a search that can be leased at once, with those that are leased. */
static uint32_t count_trials(const struct wpk_coordinator *c, const struct wpk_search *search,
                             uint64_t now_ns)
{
    uint32_t ended = search->ok_count + search->failed_count;
    uint32_t count = search->ask_count - ended;
    if (wpk_search_time_over(search, now_ns)) {
        return search->leased_count;
    }
    if (c->builds_held) {
        return search->leased_count + search->built.count;
    }
    if (!search->exhausted && search->candidates > search->ask_count) {
        uint32_t flight = search->flight_max > 0 ? search->flight_max : UINT32_MAX;
        flight = least(flight, search->candidates - ended);
        count = flight > count ? flight : count;
    }
    return search->anchor.now[0] == '\0' ? least(count, WPK_ANCHORLESS_MAX) : count;
}

static void count_search(const struct wpk_coordinator *c, const struct wpk_search *search,
                         uint64_t now_ns, struct wpk_demand *out)
{
    switch (search->phase) {
    case WPK_SEARCH_PHASE_SEARCHING:
        out->item_count += count_trials(c, search, now_ns);
        out->alone_count += search->heat && search->final.standing != WPK_STANDING_ENDED;
        for (uint32_t i = 0; i < search->vendor_count; i++) {
            out->item_count += search->vendors[i].standing != WPK_STANDING_ENDED;
        }
        /* fall through */
    case WPK_SEARCH_PHASE_PLAIN:
        out->item_count += search->plain.item.standing != WPK_STANDING_ENDED;
        break;
    case WPK_SEARCH_PHASE_FINALS:
        out->alone_count += search->final.standing != WPK_STANDING_ENDED;
        break;
    case WPK_SEARCH_PHASE_VERIFYING:
        out->alone_count += search->verify.standing != WPK_STANDING_ENDED;
        break;
    default:
        break;
    }
}

/* True if the operator stands for its search: the first of those that are worked on. */
static bool stands_for_search(const struct wpk_job_op_state *op)
{
    const struct wpk_job_op_state *first = op->search->ops;
    while (first != NULL && first->claims[WPK_QUEUE_RUN] == NULL) {
        first = first->next;
    }
    return first == op;
}

static void count_job(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                      uint64_t now_ns, struct wpk_demand *out)
{
    uint32_t worked_max = wpk_bind_worked_max(c, job);
    for (uint32_t i = 0, live = 0; i < job->op_count && live < worked_max; i++) {
        const struct wpk_job_op_state *op = &job->ops[i];
        if (wpk_phase_ended(op->phase)) {
            continue;
        }
        /* A search that is not open yet begins as every search does: without an anchor. */
        if (op->search == NULL || op->search->phase == WPK_SEARCH_PHASE_OPENING) {
            out->item_count += c->builds_held ? 0 : least(wpk_share_budget(op), WPK_ANCHORLESS_MAX);
        } else if (stands_for_search(op)) {
            count_search(c, op->search, now_ns, out);
        }
        live++;
    }
}

/* Labels are sorted, and zeros follow their texts. */
static bool asks_the_same(const struct wpk_job_entry *a, const struct wpk_job_entry *b)
{
    return strcmp(a->kind, b->kind) == 0 && strcmp(a->device, b->device) == 0 &&
           memcmp(a->labels, b->labels, sizeof a->labels) == 0;
}

uint32_t wpk_demand_list(const struct wpk_coordinator *c, uint64_t now_ns, struct wpk_demand *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->job_count && !c->halted && !c->draining; i++) {
        const struct wpk_job_entry *job = c->jobs[i];
        if (job->finished_wall_ns != 0 || job->state == WPK_JOB_PAUSED) {
            continue;
        }
        uint32_t at = 0;
        while (at < count && !asks_the_same(out[at].job, job)) {
            at++;
        }
        if (at == count) {
            WPK_ASSERT(count < WPK_JOBS_LIVE_MAX);
            out[count++] = (struct wpk_demand){.job = job};
        }
        count_job(c, job, now_ns, &out[at]);
    }
    return count;
}

uint32_t wpk_demand_workers(const struct wpk_demand *demand)
{
    return demand->alone_count + (demand->item_count + WPK_DEMAND_HELD - 1) / WPK_DEMAND_HELD;
}

const char *wpk_demand_device(const struct wpk_demand *demand)
{
    return demand->job->device[0] != '\0' ? demand->job->device : demand->job->kind;
}
