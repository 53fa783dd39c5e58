/* SPDX-License-Identifier: Apache-2.0 */
/* Searches: opened from the store, asked for candidates, and released.
 *
 * The strategy itself runs outside the state (search_actor.c). asks.c keeps the asks, bind.c binds
 * operators to searches, and course.c leads a search through its phases. */
#include "coordinator/state/search.h"

#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long time_ms = 20; /* ten samples; of less time, one for each 2 ms */

bool wpk_search_set_time(const char *ms)
{
    char *end;
    unsigned long wanted = strtoul(ms != NULL ? ms : "20", &end, 10);
    bool valid = *end == '\0' && wanted >= 2 && wanted <= 1000;
    time_ms = valid ? wanted : time_ms;
    return valid;
}

/* ---- life */

struct wpk_search *wpk_search_new(struct wpk_coordinator *c, const struct wpk_search_key *key,
                                  const char *key_hash)
{
    struct wpk_search *search = WPK_DEMAND(calloc(1, sizeof *search));
    search->handle = c->handle_next++;
    search->key = *key;
    snprintf(search->key_hash, sizeof search->key_hash, "%s", key_hash);
    search->policy = (struct wpk_policy){.threads = key->threads,
                                         .conditions = key->conditions,
                                         .time_ns_min = time_ms * 1000 * 1000,
                                         .sample_count = time_ms < 20 ? (int)time_ms / 2 : 10,
                                         .race_ratio = 1.3};
    wpk_err err = wpk_accuracy_parse(key->accuracy, &search->accuracy, NULL);
    WPK_ASSERT(err == WPK_OK); /* a submission prints it */
    search->timer.owner = search;
    search->refused_told = UINT32_MAX;
    wpk_asks_init(search);
    c->searches =
        wpk_grow(c->searches, c->search_count, &c->search_capacity, sizeof(struct wpk_search *));
    search->place = c->search_count;
    c->searches[c->search_count++] = search;
    wpk_table_put(&c->searches_by_handle, search->handle, search);
    wpk_table_put_text(&c->searches_by_key, search->key_hash, search);
    return search;
}

/* Enter a search in the list of its problem. The kernel that a peer of its class knows as served
 * may be newer than the one that the store returned. */
static void enter_problem(struct wpk_coordinator *c, struct wpk_search *search)
{
    struct wpk_search *first = wpk_table_take(&c->searches_by_problem, search->problem_id);
    const struct wpk_search *peer = first;
    while (peer != NULL && strcmp(peer->key.accuracy, search->key.accuracy) != 0) {
        peer = peer->problem_next;
    }
    if (peer != NULL) {
        search->served = peer->served;
    }
    search->problem_next = first;
    wpk_table_put(&c->searches_by_problem, search->problem_id, search);
}

static void leave_problem(struct wpk_coordinator *c, struct wpk_search *search)
{
    struct wpk_search *first = wpk_table_take(&c->searches_by_problem, search->problem_id);
    struct wpk_search **at = &first;
    while (*at != search) {
        at = &(*at)->problem_next;
    }
    *at = search->problem_next;
    if (first != NULL) {
        wpk_table_put(&c->searches_by_problem, search->problem_id, first);
    }
}

/* No table and no list of the state has it any more. */
static void leave(struct wpk_coordinator *c, struct wpk_search *search)
{
    WPK_ASSERT(search->claims == NULL);
    wpk_timer_cancel(&c->search_timers, &search->timer);
    wpk_table_take(&c->searches_by_handle, search->handle);
    wpk_table_take_text(&c->searches_by_key, search->key_hash);
    if (search->id != 0) {
        wpk_table_take(&c->searches_by_id, search->id);
        leave_problem(c, search);
    }
    c->searches[search->place] = c->searches[--c->search_count];
    c->searches[search->place]->place = search->place;
}

static void dispose(struct wpk_search *search)
{
    wpk_asks_fini(search);
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        free(search->vendors[i].text);
    }
    wpk_plain_fini(search);
    wpk_final_fini(search);
    free(search->op);
    free(search);
}

void wpk_search_free(struct wpk_coordinator *c, struct wpk_search *search)
{
    leave(c, search);
    dispose(search);
}

/* Some effect's answer will name it, or some worker's lease refers to it. */
static bool is_busy(const struct wpk_search *search)
{
    return (search->id == 0 && !wpk_search_is_broken(search)) || search->asked_count > 0 ||
           search->phase == WPK_SEARCH_PHASE_STORING || search->leased_count > 0;
}

void wpk_search_release(struct wpk_coordinator *c, struct wpk_search *search)
{
    if (search->ops != NULL || is_busy(search) || wpk_mark_any(search->marks, WPK_SEARCH_MARKS)) {
        return;
    }
    wpk_effect_add(c, WPK_EFFECT_CLOSE_SEARCH)->handle = search->handle;
    leave(c, search);
    search->released_next = c->released;
    c->released = search;
}

void wpk_search_free_released(struct wpk_coordinator *c)
{
    while (c->released != NULL) {
        struct wpk_search *search = c->released;
        c->released = search->released_next;
        dispose(search);
    }
}

struct wpk_search *wpk_search_find(const struct wpk_coordinator *c, uint64_t id)
{
    return wpk_table_get(&c->searches_by_id, id);
}

struct wpk_search *wpk_search_find_handle(const struct wpk_coordinator *c, uint64_t handle)
{
    return wpk_table_get(&c->searches_by_handle, handle);
}

void wpk_search_store(struct wpk_coordinator *c)
{
    struct wpk_search *search;
    while ((search = wpk_mark_take(&c->marked_searches[WPK_SEARCH_STORE])) != NULL) {
        wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
        wpk_mark_search(c, search, WPK_SEARCH_RELEASE);
    }
}

/* ---- the time that work of it was out */

uint64_t wpk_search_elapsed_ns(const struct wpk_search *search, uint64_t now_ns)
{
    uint64_t since =
        search->active_ns != 0 && now_ns > search->active_ns ? now_ns - search->active_ns : 0;
    return search->elapsed_ns + since;
}

bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns)
{
    return wpk_search_elapsed_ns(search, now_ns) >= search->time_ns;
}

/* ---- what the store and the strategy answer */

static void fail(struct wpk_search *search, wpk_err err, const char *reason)
{
    snprintf(search->error, sizeof search->error, "%s",
             reason[0] != '\0' ? reason : wpk_err_text(err));
}

/* Take the recorded asks of an opened search. */
static void take_asks(struct wpk_coordinator *c, struct wpk_search *search,
                      struct wpk_opened *opened)
{
    uint32_t count = opened->ask_count - opened->told_count;
    search->told_count = opened->told_count;
    search->ask_count = opened->told_count;
    search->ok_count = opened->ok_count;
    search->failed_count = opened->failed_count;
    search->known_count = opened->known_count;
    memcpy(search->outcomes, opened->outcomes, sizeof search->outcomes);
    memcpy(search->best, opened->best, sizeof search->best);
    search->best_count = opened->best_count;
    opened->best_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        wpk_asks_add(search, &opened->window[i]);
    }
    free(opened->window);
    opened->window = NULL;
    opened->ask_count = opened->told_count;
    wpk_asks_tell(c, search);
}

void wpk_search_opened(struct wpk_coordinator *c)
{
    struct wpk_search *search = wpk_search_find_handle(c, c->event->handle);
    struct wpk_opened *opened = c->event->opened;
    if (search == NULL) {
        return;
    }
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    if (opened->err != WPK_OK) {
        fail(search, opened->err, opened->reason);
        return;
    }
    WPK_ASSERT(search->id == 0 && opened->search_id != 0);
    search->id = opened->search_id;
    wpk_table_put(&c->searches_by_id, search->id, search);
    search->problem_id = opened->problem_id;
    search->elapsed_ns = opened->elapsed_ns;
    search->ended_asks = opened->ended_asks;
    search->exhausted = opened->exhausted;
    search->kernel_id = opened->kernel_id;
    search->served = opened->served;
    search->revoked = opened->revoked;
    enter_problem(c, search);
    memcpy(search->vendors, opened->vendors, sizeof search->vendors);
    search->vendor_count = opened->vendor_count;
    opened->vendor_count = 0;
    wpk_plain_open(search, opened);
    search->plain_wins =
        opened->own_artifact[0] != '\0' && wpk_plain_works(search) &&
        strcmp(opened->own_artifact, search->plain.item.trial.artifact_sha256) == 0;
    search->anchor = opened->anchor;
    take_asks(c, search, opened);
    if (search->anchor.sha256[0] != '\0' && search->anchor.now[0] == '\0') {
        wpk_anchor_replace(c, search);
    }
}

void wpk_search_asked(struct wpk_coordinator *c)
{
    struct wpk_search *search = wpk_search_find_handle(c, c->event->handle);
    struct wpk_asked *asked = c->event->asked;
    if (search == NULL) {
        return;
    }
    WPK_ASSERT(search->asked_count > 0);
    search->asked_count = 0;
    search->promised_count = 0;
    /* A result that was told since the ask may be the one that the strategy waits for, so compare
     * with the count at the ask: no other event would ask it again. */
    search->refused_told = asked->refused ? search->asked_told : UINT32_MAX;
    search->flight_max =
        asked->refused ? search->ask_count - search->asked_told : search->flight_max;
    if (asked->exhausted && !search->exhausted) {
        search->exhausted = true;
        wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
    }
    search->size_log2 = asked->size_log2;
    for (uint32_t i = 0; i < asked->count; i++) {
        wpk_asks_add(search, &asked->items[i]);
    }
    free(asked->items);
    asked->items = NULL;
    asked->count = 0;
    if (asked->err != WPK_OK) {
        fail(search, asked->err, asked->reason);
    }
    wpk_asks_tell(c, search);
    wpk_worker_class_answered(c, search);
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
}

bool wpk_search_can_ask(const struct wpk_search *search, uint64_t now_ns)
{
    return search->phase == WPK_SEARCH_PHASE_SEARCHING && search->asked_count == 0 &&
           search->told_count != search->refused_told && !search->exhausted &&
           search->ask_count < search->candidates &&
           search->ask_count - search->told_count <= WPK_WINDOW_MAX - WPK_ASKED_MAX &&
           !wpk_search_time_over(search, now_ns);
}

bool wpk_search_want(struct wpk_coordinator *c, struct wpk_search *search, uint32_t count)
{
    if (search->asked_count > 0) {
        return true;
    }
    if (count == 0 || !wpk_search_can_ask(search, c->event->now_ns)) {
        return false;
    }
    uint32_t room = search->candidates - search->ask_count;
    uint32_t most = room < WPK_ASKED_MAX ? room : WPK_ASKED_MAX;
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_ASK);
    effect->search = search;
    effect->count = count < most ? count : most;
    search->asked_count = effect->count;
    search->asked_told = search->told_count;
    search->promised_count = 0;
    return true;
}

/* ---- results */

bool wpk_search_has_device(const struct wpk_search *search)
{
    return search->device.kind[0] != '\0';
}

bool wpk_search_is_broken(const struct wpk_search *search)
{
    return search->id == 0 && search->phase == WPK_SEARCH_PHASE_FAILED;
}

bool wpk_search_trusts(const struct wpk_search *search, const struct wpk_worker *worker,
                       enum wpk_work_stage stage)
{
    char class_text[WPK_TIMING_CLASS_TEXT_MAX];
    const struct wpk_worker_class *worker_class = worker->worker_class;
    wpk_search_key_class(&search->key, class_text);
    if (stage == WPK_STAGE_BUILD) {
        return wpk_worker_class_builds_for(worker_class, class_text) &&
               wpk_worker_class_offers(worker_class, search->key.providers);
    }
    return (worker_class->hello.roles & WPK_WORKER_RUNS) != 0 &&
           worker_class->hello.device.core_count >= search->key.threads &&
           strcmp(worker_class->timing->text, class_text) == 0;
}

struct wpk_work_item *wpk_search_work_item(struct wpk_search *search, wpk_work_id work)
{
    switch (work.kind) {
    case WPK_WORK_TRIAL:
        return wpk_asks_get(search, work.index);
    case WPK_WORK_VENDOR:
        return work.index < search->vendor_count ? &search->vendors[work.index] : NULL;
    case WPK_WORK_FINAL:
        return (search->phase == WPK_SEARCH_PHASE_FINALS || search->heat) &&
                       work.index == search->final_number
                   ? &search->final
                   : NULL;
    case WPK_WORK_VERIFY:
        return search->phase == WPK_SEARCH_PHASE_VERIFYING && work.index == search->verify_number
                   ? &search->verify
                   : NULL;
    case WPK_WORK_PLAIN:
        return work.index == search->plain.number ? &search->plain.item : NULL;
    case WPK_WORK_COUNT:
        break;
    }
    return NULL;
}

/* Events about kernels, passed on to the searches that go on: a kernel was stored, changed by an
 * operator, or lost.
 *
 * The store refuses to serve a revoked kernel in any case. But a search that did not know of the
 * revocation would time its candidates against the revoked kernel, might let it win, and would end
 * with a kernel that is not served, although it has others. */

/* Discard all measurements that the search has of a revoked implementation. */
static void forget(struct wpk_coordinator *c, struct wpk_search *search, const char *provider,
                   const char *artifact)
{
    wpk_revoked_put(&search->revoked, provider, artifact);
    for (uint32_t i = 0; i < search->vendor_count && artifact[0] == '\0'; i++) {
        struct wpk_work_item *vendor = &search->vendors[i];
        if (vendor->standing == WPK_STANDING_ENDED && strcmp(vendor->text, provider) == 0) {
            vendor->trial = (struct wpk_trial_summary){.outcome = WPK_OUTCOME_WRONG_RESULT};
        }
    }
    if (artifact[0] != '\0') {
        wpk_asks_reject(search, artifact, WPK_OUTCOME_WRONG_RESULT);
        wpk_plain_revoked(search, artifact);
        wpk_anchor_lost(c, search, artifact);
    }
}

void wpk_kernel_changed(struct wpk_coordinator *c)
{
    const struct wpk_kernel_event *event = c->event->kernel;
    struct wpk_search *search = wpk_table_get(&c->searches_by_problem, event->problem_id);
    bool revokes = event->revoked_provider[0] != '\0';
    for (; search != NULL; search = search->problem_next) {
        if (revokes) {
            forget(c, search, event->revoked_provider, event->revoked_artifact);
        }
        wpk_final_changed(c, search, event);
    }
}

void wpk_kernel_put(struct wpk_coordinator *c)
{
    struct wpk_search *search = wpk_search_find_handle(c, c->event->handle);
    if (search != NULL) {
        wpk_final_kernel_put(c, search, c->event->kernel_id);
    }
}

void wpk_kernel_artifact_lost(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->search_count; i++) {
        wpk_final_lost(c, c->searches[i], c->event->sha256);
    }
}
