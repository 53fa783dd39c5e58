/* SPDX-License-Identifier: Apache-2.0 */
/* A search's asks: the window of those that are not told yet, and the best of the others.
 *
 *     0 ........ told_count ........ ask_count
 *     counted, and     in the window:
 *     the best kept    open, leased, or ended after an earlier one that has not
 *
 * Asks are told to the strategy in the order in which they were asked, whatever the order of their
 * results. So the asks are a function of the seed and of the results. */
#include "coordinator/state/asks.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Revoked implementations of a problem neither win nor count in its searches. */

/* A shared object by its hash, a vendor's kernel by its provider: neither can be the other. */
static uint64_t key_of(const char *provider, const char *artifact)
{
    return wpk_table_hash(artifact[0] != '\0' ? artifact : provider);
}

bool wpk_revoked_has(const struct wpk_revoked *revoked, const char *provider, const char *artifact)
{
    uint64_t key = key_of(provider, artifact);
    for (uint32_t i = 0; i < revoked->count; i++) {
        if (revoked->keys[i] == key) {
            return true;
        }
    }
    return false;
}

void wpk_revoked_put(struct wpk_revoked *revoked, const char *provider, const char *artifact)
{
    if (!wpk_revoked_has(revoked, provider, artifact) && revoked->count < WPK_REVOKED_MAX) {
        revoked->keys[revoked->count++] = key_of(provider, artifact);
    }
}

const struct wpk_record *wpk_revoked_refuse(struct wpk_coordinator *c,
                                            const struct wpk_search *search, const char *provider,
                                            const struct wpk_record *record)
{
    bool nameless = provider[0] == '\0' && record->artifact_sha256[0] == '\0';
    if (record->outcome != WPK_OUTCOME_OK || nameless ||
        !wpk_revoked_has(&search->revoked, provider,
                         provider[0] != '\0' ? "" : record->artifact_sha256)) {
        return record;
    }
    struct wpk_record *refused = wpk_effect_memory(c, 1, sizeof *refused);
    refused->outcome = WPK_OUTCOME_WRONG_RESULT;
    snprintf(refused->log, sizeof refused->log, "revoked before");
    return refused;
}

#define WINDOW_FIRST 64 /* room for so many asks at first */
#define LOST_MAX 16     /* open asks that are looked at for one that a device has not lost */

void wpk_asks_init(struct wpk_search *search)
{
    search->open = (struct wpk_open_list){WPK_OPEN_END, WPK_OPEN_END, 0};
    search->built = search->open;
}

void wpk_asks_fini(struct wpk_search *search)
{
    for (uint32_t n = search->told_count; n < search->ask_count; n++) {
        free(wpk_asks_get(search, n)->text);
        wpk_built_free(wpk_asks_get(search, n)->built);
    }
    free(search->asks);
    for (uint32_t i = 0; i < search->best_count; i++) {
        free(search->best[i].candidate);
    }
}

struct wpk_work_item *wpk_asks_get(const struct wpk_search *search, uint32_t number)
{
    if (number < search->told_count || number >= search->ask_count) {
        return NULL;
    }
    return &search->asks[number & (search->ask_capacity - 1)];
}

static void grow(struct wpk_search *search)
{
    uint32_t capacity = search->ask_capacity == 0 ? WINDOW_FIRST : search->ask_capacity * 2;
    struct wpk_work_item *grown = WPK_DEMAND(calloc(capacity, sizeof *grown));
    for (uint32_t n = search->told_count; n < search->ask_count; n++) {
        grown[n & (capacity - 1)] = *wpk_asks_get(search, n);
    }
    free(search->asks);
    search->asks = grown;
    search->ask_capacity = capacity;
}

static void drop_best(struct wpk_search *search, uint32_t at)
{
    free(search->best[at].candidate);
    search->best_count--;
    memmove(&search->best[at], &search->best[at + 1],
            (search->best_count - at) * sizeof search->best[0]);
}

void wpk_asks_count(struct wpk_search *search, uint32_t number, uint64_t worker)
{
    const struct wpk_work_item *ask = wpk_asks_get(search, number);
    WPK_ASSERT(ask != NULL && ask->standing == WPK_STANDING_ENDED);
    if (ask->trial.outcome == WPK_OUTCOME_OK) {
        search->ok_count++;
    } else {
        search->failed_count++;
        search->outcomes[ask->trial.outcome]++;
    }
    search->known_count += ask->known;
    struct wpk_best *best =
        wpk_best_put(search->best, &search->best_count, search->accuracy, &ask->trial);
    if (best != NULL) {
        best->number = number;
        best->candidate = WPK_DEMAND(strdup(ask->text));
        best->worker = worker;
    }
}

void wpk_asks_add(struct wpk_search *search, const struct wpk_work_item *ask)
{
    if (search->ask_count - search->told_count == search->ask_capacity) {
        grow(search);
    }
    uint32_t number = search->ask_count++;
    *wpk_asks_get(search, number) = *ask;
    if (ask->standing == WPK_STANDING_ENDED) {
        /* History was read before its artifact was revoked. */
        struct wpk_trial_summary *trial = &wpk_asks_get(search, number)->trial;
        if (trial->outcome == WPK_OUTCOME_OK && trial->artifact_sha256[0] != '\0' &&
            wpk_revoked_has(&search->revoked, "", trial->artifact_sha256)) {
            *trial = (struct wpk_trial_summary){.outcome = WPK_OUTCOME_WRONG_RESULT};
        }
        wpk_asks_count(search, number, 0);
    } else {
        wpk_asks_open(search, number, false);
    }
}

/* ---- those that are open */

static struct wpk_open_list *list_of(struct wpk_search *search, const struct wpk_work_item *ask)
{
    return ask->built != NULL ? &search->built : &search->open;
}

void wpk_asks_open(struct wpk_search *search, uint32_t number, bool first)
{
    struct wpk_work_item *ask = wpk_asks_get(search, number);
    struct wpk_open_list *list = list_of(search, ask);
    ask->open_prev = first ? WPK_OPEN_END : list->last;
    ask->open_next = first ? list->first : WPK_OPEN_END;
    *(ask->open_prev != WPK_OPEN_END ? &wpk_asks_get(search, ask->open_prev)->open_next
                                     : &list->first) = number;
    *(ask->open_next != WPK_OPEN_END ? &wpk_asks_get(search, ask->open_next)->open_prev
                                     : &list->last) = number;
    list->count++;
}

void wpk_asks_unopen(struct wpk_search *search, uint32_t number)
{
    struct wpk_work_item *ask = wpk_asks_get(search, number);
    struct wpk_open_list *list = list_of(search, ask);
    WPK_ASSERT(list->count > 0);
    *(ask->open_prev != WPK_OPEN_END ? &wpk_asks_get(search, ask->open_prev)->open_next
                                     : &list->first) = ask->open_next;
    *(ask->open_next != WPK_OPEN_END ? &wpk_asks_get(search, ask->open_next)->open_prev
                                     : &list->last) = ask->open_prev;
    list->count--;
}

uint32_t wpk_asks_next(const struct wpk_search *search, const struct wpk_open_list *list,
                       const struct wpk_worker *worker)
{
    uint32_t number = list->first;
    for (int i = 0; i < LOST_MAX && number != WPK_OPEN_END; i++) {
        const struct wpk_work_item *ask = wpk_asks_get(search, number);
        if (ask->lost_on != worker->device_hash) {
            return number;
        }
        number = ask->open_next;
    }
    return WPK_OPEN_END;
}

/* ---- telling */

void wpk_asks_tell(struct wpk_coordinator *c, struct wpk_search *search)
{
    struct wpk_work_item *ask = wpk_asks_get(search, search->told_count);
    while (ask != NULL && ask->standing == WPK_STANDING_ENDED) {
        struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_TELL);
        effect->search = search;
        effect->ask = search->told_count;
        effect->told = wpk_work_item_copy(c, ask, ask->text);
        free(ask->text);
        wpk_built_free(ask->built);
        search->told_count++;
        ask = wpk_asks_get(search, search->told_count);
    }
}

bool wpk_asks_lose(struct wpk_search *search, const char *artifact)
{
    uint32_t before = search->best_count;
    for (uint32_t i = before; i-- > 0;) {
        if (strcmp(search->best[i].trial.artifact_sha256, artifact) == 0) {
            drop_best(search, i);
        }
    }
    return search->best_count < before;
}

void wpk_asks_reject(struct wpk_search *search, const char *artifact, enum wpk_outcome outcome)
{
    for (uint32_t i = search->best_count; i-- > 0;) {
        if (strcmp(search->best[i].trial.artifact_sha256, artifact) == 0) {
            drop_best(search, i);
            WPK_ASSERT(search->ok_count > 0);
            search->ok_count--;
            search->failed_count++;
            search->outcomes[outcome]++;
        }
    }
}

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

bool wpk_anchor_fits(const struct wpk_search *search, const struct wpk_record *record)
{
    const char *now = search->anchor.now;
    return now[0] == '\0' ? record->artifact_sha256[0] != '\0' && !record->timing.censored
                          : record->anchor_ratio > 0 && strcmp(record->anchor_sha256, now) == 0;
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
