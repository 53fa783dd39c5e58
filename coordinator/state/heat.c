/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/heat.h"

#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/phase.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/work_item.h"

#include <math.h>
#include <string.h>

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
