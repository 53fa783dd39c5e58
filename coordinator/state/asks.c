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
#include "coordinator/state/revoked.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/work_item.h"
#include "coordinator/state/worker.h"

#include <stdlib.h>
#include <string.h>

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
    struct wpk_work_item *grown = calloc(capacity, sizeof *grown);
    WPK_ASSERT(grown != NULL);
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

static void keep_best(struct wpk_search *search, uint32_t number, const struct wpk_work_item *ask,
                      uint64_t worker)
{
    const struct wpk_trial_summary *trial = &ask->trial;
    if (trial->outcome != WPK_OUTCOME_OK || wpk_trial_raced_out(search->accuracy, trial) ||
        trial->artifact_sha256[0] == '\0') {
        return;
    }
    /* Candidates that differ may come to the same code. */
    for (uint32_t i = 0; i < search->best_count; i++) {
        if (strcmp(search->best[i].trial.artifact_sha256, trial->artifact_sha256) == 0) {
            return;
        }
    }
    uint32_t at = search->best_count;
    while (at > 0 && wpk_trial_is_faster(trial, &search->best[at - 1].trial)) {
        at--;
    }
    if (at == WPK_BEST_MAX) {
        return;
    }
    if (search->best_count == WPK_BEST_MAX) {
        drop_best(search, WPK_BEST_MAX - 1);
    }
    memmove(&search->best[at + 1], &search->best[at],
            (search->best_count - at) * sizeof search->best[0]);
    search->best_count++;
    search->best[at] = (struct wpk_best){
        .number = number, .candidate = strdup(ask->text), .trial = *trial, .worker = worker};
    WPK_ASSERT(search->best[at].candidate != NULL);
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
    keep_best(search, number, ask, worker);
}

/* Fail an ask with a known result whose artifact was revoked after history was read. */
static void refuse_revoked(const struct wpk_search *search, struct wpk_work_item *ask)
{
    if (ask->trial.outcome == WPK_OUTCOME_OK && ask->trial.artifact_sha256[0] != '\0' &&
        wpk_revoked_has(&search->revoked, "", ask->trial.artifact_sha256)) {
        ask->trial = (struct wpk_trial_summary){.outcome = WPK_OUTCOME_WRONG_RESULT};
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
        refuse_revoked(search, wpk_asks_get(search, number));
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
