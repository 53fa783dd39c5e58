/* SPDX-License-Identifier: Apache-2.0 */
/* The anchor of a search: its candidates are timed in turns with it.
 *
 *     none ──first candidate that ends ok──▶ itself ──its shared object is lost or revoked,──┐
 *                                              ▲      or it fails beside a candidate         ▼
 *                                              └── stand-in: the best that is left; or, with none
 *                                                  left, the next candidate that ends ok
 *
 * The anchor never changes, and every ratio that is stored or told is to its time. A stand-in has a
 * ratio to the anchor itself: ratios to the stand-in are multiplied by it. An anchor or stand-in
 * that failed beside a candidate stays a finalist, because another host may be able to run it, and
 * is no stand-in again. While there is neither, WPK_ANCHORLESS_MAX candidates are leased at a time;
 * the first that ends ok is taken, and others that end ok were timed without it and run again. */
#include "coordinator/state/anchor.h"

#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/table.h"
#include "coordinator/state/work_item.h"

#include <string.h>

bool wpk_anchor_fits(const struct wpk_search *search, const struct wpk_record *record)
{
    const char *now = search->anchor.now;
    if (now[0] == '\0') {
        return record->artifact_sha256[0] != '\0' && !record->timing.censored;
    }
    return record->anchor_ratio > 0 && strcmp(record->anchor_sha256, now) == 0;
}

/* It was timed alone. Against an anchor that is lost, by the time that this had last. */
static void take(struct wpk_coordinator *c, struct wpk_search *search,
                 const struct wpk_record *record)
{
    struct wpk_anchor *anchor = &search->anchor;
    double ns = (double)record->timing.median_ns;
    anchor->ratio = anchor->last_ns > 0 ? ns / anchor->last_ns : 1;
    memcpy(anchor->now, record->artifact_sha256, sizeof anchor->now);
    if (anchor->sha256[0] == '\0') {
        memcpy(anchor->sha256, record->artifact_sha256, sizeof anchor->sha256);
        anchor->ratio = 1;
    }
    wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search; /* in the same batch as its trial */
    wpk_effect_log(c, "anchor", "search=%llu artifact=%.12s ratio=%.4f",
                   (unsigned long long)search->id, anchor->now, anchor->ratio);
}

const struct wpk_record *wpk_anchor_apply(struct wpk_coordinator *c, struct wpk_search *search,
                                          const struct wpk_record *record)
{
    if (record->outcome != WPK_OUTCOME_OK || !wpk_anchor_fits(search, record)) {
        return record;
    }
    struct wpk_record *anchored = wpk_effect_memory(c, 1, sizeof *anchored);
    *anchored = *record;
    if (search->anchor.now[0] == '\0') {
        take(c, search, record);
        anchored->anchor_ns = record->timing.median_ns;
        anchored->anchor_ratio = 1;
    }
    anchored->anchor_ratio *= search->anchor.ratio;
    search->anchor.last_ns = (double)anchored->anchor_ns / search->anchor.ratio;
    return anchored;
}

static bool has_failed(const struct wpk_anchor *anchor, const char *artifact)
{
    for (uint32_t i = 0; i < anchor->failed_count && i < WPK_BEST_MAX; i++) {
        if (anchor->failed[i] == wpk_table_hash(artifact)) {
            return true;
        }
    }
    return false;
}

void wpk_anchor_replace(struct wpk_coordinator *c, struct wpk_search *search)
{
    struct wpk_anchor *anchor = &search->anchor;
    WPK_ASSERT(anchor->sha256[0] != '\0');
    anchor->now[0] = '\0';
    anchor->ratio = 0;
    for (uint32_t i = 0; i < search->best_count && anchor->now[0] == '\0'; i++) {
        const struct wpk_trial_summary *trial = &search->best[i].trial;
        if (trial->anchor_ratio > 0 && !has_failed(anchor, trial->artifact_sha256)) {
            memcpy(anchor->now, trial->artifact_sha256, sizeof anchor->now);
            anchor->ratio = trial->anchor_ratio;
        }
    }
    wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
    wpk_effect_log(c, "anchor", "search=%llu artifact=%.12s ratio=%.4f",
                   (unsigned long long)search->id, anchor->now, anchor->ratio);
}

void wpk_anchor_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact)
{
    if (artifact[0] != '\0' && strcmp(search->anchor.now, artifact) == 0) {
        wpk_anchor_replace(c, search);
        wpk_mark_search(c, search, WPK_SEARCH_READY);
    }
}

bool wpk_anchor_failed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_record *record)
{
    struct wpk_anchor *anchor = &search->anchor;
    if (!record->anchor_failed || anchor->now[0] == '\0' ||
        strcmp(anchor->now, record->anchor_sha256) != 0) {
        return false;
    }
    anchor->failed[anchor->failed_count++ % WPK_BEST_MAX] = wpk_table_hash(anchor->now);
    wpk_effect_log(c, "anchor_failed", "search=%llu artifact=%.12s reason=\"%.200s\"",
                   (unsigned long long)search->id, anchor->now, record->log);
    wpk_anchor_replace(c, search);
    return true;
}

bool wpk_anchor_waits(const struct wpk_search *search)
{
    uint32_t trials = search->leased_count - (search->plain.item.standing == WPK_STANDING_LEASED);
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        trials -= search->vendors[i].standing == WPK_STANDING_LEASED;
    }
    return search->anchor.now[0] == '\0' && trials >= WPK_ANCHORLESS_MAX;
}
