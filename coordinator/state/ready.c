/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/ready.h"

#include "coordinator/state/anchor.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/event.h"
#include "coordinator/state/heat.h"
#include "coordinator/state/phase.h"
#include "coordinator/state/plain.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/work_item.h"
#include "coordinator/state/worker_class.h"

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
    unsigned ready = open ? stages_ready(search, c->event->now_ns) : 0;
    wpk_claim_set_ready(c, search, ready);
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
