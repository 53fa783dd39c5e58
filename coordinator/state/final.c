/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a search. The best candidates and the vendors are timed side by side, the best
 * candidates are verified on fresh inputs, and the fastest entry that is left becomes the kernel.
 *
 * Times of the search itself only choose the contenders: they were taken minutes apart, and the
 * fastest of many is likely to be a lucky one. They may also come from a worker whose device is not
 * what it says. So one worker times all contenders of a final, on the same device, and another
 * worker, if there is one, verifies. */
#include "coordinator/state/final.h"

#include "common/crypto.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker.h"
#include "schema/message.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct wpk_final_entry *add_entry(struct wpk_search *search, enum wpk_entry_kind kind,
                                         const char *provider, const char *candidate)
{
    WPK_ASSERT(search->entry_count < WPK_CONTENDERS_MAX);
    struct wpk_final_entry *entry = &search->entries[search->entry_count++];
    memset(entry, 0, sizeof *entry);
    entry->kind = kind;
    entry->candidate = WPK_DEMAND(strdup(candidate));
    snprintf(entry->provider, sizeof entry->provider, "%s", provider);
    return entry;
}

static void set_trial(struct wpk_final_entry *entry, const struct wpk_trial_summary *trial)
{
    entry->trial = *trial;
    entry->timing = (struct wpk_timing){.median_ns = trial->median_ns,
                                        .min_ns = trial->min_ns,
                                        .mad_ns = trial->mad_ns,
                                        .sample_count = 1};
}

static void reset_item(struct wpk_work_item *item)
{
    wpk_built_free(item->built);
    memset(item, 0, sizeof *item);
}

bool wpk_final_is_unverified(const struct wpk_final_entry *entry)
{
    return entry->kind == WPK_ENTRY_OWN && !entry->verified;
}

void wpk_final_fini(struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->entry_count; i++) {
        free(search->entries[i].candidate);
        free(search->entries[i].schedule);
    }
    search->entry_count = 0;
    reset_item(&search->final);
    reset_item(&search->verify);
}

/* A number for these contenders: the same wherever and whenever it is made. */
static uint32_t number_of(const struct wpk_final_entry *entries, uint32_t count)
{
    struct wpk_crypto_hash hash;
    uint8_t digest[WPK_SHA256_SIZE];
    wpk_crypto_hash_init(&hash);
    for (uint32_t i = 0; i < count; i++) {
        wpk_crypto_hash_add(&hash, entries[i].provider, strlen(entries[i].provider) + 1);
        wpk_crypto_hash_add(&hash, entries[i].artifact_sha256,
                            strlen(entries[i].artifact_sha256) + 1);
    }
    wpk_crypto_hash_finish(&hash, digest);
    uint32_t number;
    memcpy(&number, digest, sizeof number);
    return number & INT32_MAX; /* what a message takes */
}

uint32_t wpk_final_rounds(const struct wpk_search *search)
{
    uint32_t tried = (search->ok_count + search->failed_count) | 1U;

    return tried < WPK_FINAL_ROUNDS_MIN ? WPK_FINAL_ROUNDS_MIN
           : tried < WPK_FINAL_ROUNDS   ? tried
                                        : WPK_FINAL_ROUNDS;
}

void wpk_final_number(struct wpk_search *search)
{
    search->final_number = number_of(search->entries, search->entry_count);
}

void wpk_final_add_best(struct wpk_coordinator *c, struct wpk_search *search, uint32_t i)
{
    const struct wpk_best *best = &search->best[i];
    struct wpk_final_entry *entry =
        add_entry(search, WPK_ENTRY_OWN, wpk_search_key_provider(c, search, best->candidate),
                  best->candidate);
    entry->number = best->number;
    set_trial(entry, &best->trial);
    entry->worker = best->worker;
    memcpy(entry->artifact_sha256, best->trial.artifact_sha256, sizeof entry->artifact_sha256);
}

void wpk_final_collect(struct wpk_coordinator *c, struct wpk_search *search)
{
    wpk_final_fini(search);
    search->heat = false;
    search->measured = true;
    bool served_is_among_them = search->served.artifact_sha256[0] == '\0';
    for (uint32_t i = 0; i < search->best_count && i < WPK_FINAL_OWN_MAX; i++) {
        wpk_final_add_best(c, search, i);
        served_is_among_them = served_is_among_them || strcmp(search->entries[i].artifact_sha256,
                                                              search->served.artifact_sha256) == 0;
    }
    for (uint32_t i = 0; i < search->vendor_count && search->entry_count < WPK_CONTENDERS_MAX - 1;
         i++) {
        const struct wpk_trial_summary *trial = &search->vendors[i].trial;
        if (trial->outcome == WPK_OUTCOME_OK &&
            wpk_accuracy_admits(search->accuracy, trial->times_direct)) {
            struct wpk_final_entry *entry =
                add_entry(search, WPK_ENTRY_VENDOR, search->vendors[i].text, "");
            set_trial(entry, &search->vendors[i].trial);
            entry->worker = search->vendor_workers[i];
        }
    }
    /* The served kernel takes part, so that a slower winner does not replace it. */
    if (!served_is_among_them) {
        struct wpk_final_entry *entry =
            add_entry(search, WPK_ENTRY_SERVED, search->served.provider, "");
        memcpy(entry->artifact_sha256, search->served.artifact_sha256,
               sizeof entry->artifact_sha256);
    }
    wpk_final_number(search);
}

bool wpk_final_has_successor(const struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->best_count && i < WPK_FINAL_OWN_MAX; i++) {
        bool is_new = true;
        for (uint32_t e = 0; e < search->entry_count; e++) {
            is_new = is_new && (search->entries[e].kind != WPK_ENTRY_OWN ||
                                search->entries[e].number != search->best[i].number);
        }
        if (is_new) {
            return true;
        }
    }
    return false;
}

bool wpk_final_excludes(const struct wpk_search *search, const struct wpk_worker *worker)
{
    if (search->phase != WPK_SEARCH_PHASE_VERIFYING || worker->name_hash != search->timed_by) {
        return false;
    }
    bool waits = search->timer.place != 0;
    bool leased = search->verify.standing == WPK_STANDING_LEASED;
    return waits || (leased && search->verify.lease->worker != worker);
}

uint32_t wpk_final_count_verified(const struct wpk_search *search)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->entry_count; i++) {
        count += search->entries[i].verified && !search->entries[i].rejected;
    }
    return count;
}

bool wpk_final_is_outdated(const struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->entry_count; i++) {
        if (search->entries[i].lost) {
            return true;
        }
    }
    return false;
}

/* If there are several workers, who timed the winner is not to verify it, for as long as another
 * may be busy. */
static void wait_for_second(struct wpk_coordinator *c, struct wpk_search *search, uint64_t timed_by)
{
    uint32_t count = 0;
    for (const struct wpk_claim *s = search->claims; s != NULL; s = s->search_next) {
        const struct wpk_work_queue *queue = s->owner_queue->queue;
        for (const struct wpk_link *link = queue->links; link != NULL; link = link->queue_next) {
            count += queue->stage == WPK_QUEUE_RUN ? link->worker_class->available_count : 0;
        }
    }
    search->timed_by = timed_by;
    if (count > 1 && timed_by != 0) {
        wpk_timer_set(&c->search_timers, &search->timer,
                      c->event->now_ns + WPK_SECOND_MS * UINT64_C(1000000));
    }
}

void wpk_final_try(struct wpk_coordinator *c, struct wpk_search *search,
                   struct wpk_final_entry *own)
{
    search->verifying = (uint32_t)(own - search->entries);
    search->verify_number = number_of(own, 1);
    reset_item(&search->verify);
    search->verify.text = own->candidate;
    /* Verified is what will be served: not what the same candidate comes to somewhere else. */
    struct wpk_built *built = WPK_DEMAND(calloc(1, sizeof *built));
    memcpy(built->artifact_sha256, own->artifact_sha256, sizeof built->artifact_sha256);
    search->verify.built = built;
    wait_for_second(c, search, own->worker);
}

/* As it is now: another final of this step may collect others in its place. */
static void put_times(struct wpk_coordinator *c, const struct wpk_search *search,
                      const struct wpk_final_entry *entry, const struct wpk_record *record,
                      const struct wpk_worker *worker)
{
    struct wpk_final_entry *copy = wpk_effect_memory(c, 1, sizeof *copy);
    *copy = *entry;
    copy->candidate = wpk_effect_text(c, entry->candidate);
    copy->schedule = NULL;
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_TIMES);
    effect->search = search;
    effect->entry = copy;
    effect->record = record;
    effect->worker = worker;
}

void wpk_final_timed(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_timing *times, const struct wpk_worker *worker)
{
    WPK_ASSERT(search->phase == WPK_SEARCH_PHASE_FINALS || search->heat);
    search->final.standing = WPK_STANDING_ENDED;
    for (uint32_t i = 0; times != NULL && i < search->entry_count; i++) {
        struct wpk_final_entry *entry = &search->entries[i];
        if (worker != NULL) {
            wpk_outlier_compare(c, search, entry->worker, entry->trial.median_ns, worker,
                                times[i].median_ns);
        }
        entry->timing = times[i];
        entry->timed = times[i].sample_count > 0;
        entry->worker = entry->timed && worker != NULL ? worker->name_hash : entry->worker;
        if (entry->timed && entry->kind != WPK_ENTRY_SERVED && !search->heat) {
            put_times(c, search, entry, NULL, worker);
        }
    }
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
}

static void forget_served(struct wpk_search *search)
{
    search->served = (struct wpk_served_kernel){.kernel_id = 0};
}

static void print_verify(const struct wpk_search *search, char out[WPK_WORK_ID_TEXT_SIZE])
{
    const wpk_work_id work = {search->id, WPK_WORK_VERIFY, search->verify_number};
    wpk_work_id_print(work, out);
}

/* Abandon a verification of another artifact than the entry's: the worker was not told which one,
 * or ignored it, and built its own. That says nothing about the entry, not even that it is
 * wrong. */
static const struct wpk_record *refuse_another(struct wpk_coordinator *c,
                                               const struct wpk_search *search,
                                               const struct wpk_final_entry *entry,
                                               const struct wpk_record *record)
{
    if (record->outcome != WPK_OUTCOME_OK ||
        strcmp(record->artifact_sha256, entry->artifact_sha256) == 0) {
        return record;
    }
    char id[WPK_WORK_ID_TEXT_SIZE];
    print_verify(search, id);
    wpk_effect_log(c, "verified_another", "work=%s worker=%s artifact=%s verified=%s", id,
                   search->verified_by, entry->artifact_sha256, record->artifact_sha256);
    struct wpk_record *refused = wpk_effect_memory(c, 1, sizeof *refused);
    refused->outcome = WPK_OUTCOME_ABANDONED;
    snprintf(refused->log, sizeof refused->log, "another artifact than the winner's was verified");
    return refused;
}

/* It was revoked while it was tried: whatever came of that. */
static const struct wpk_record *refuse_revoked(struct wpk_coordinator *c)
{
    struct wpk_record *refused = wpk_effect_memory(c, 1, sizeof *refused);
    refused->outcome = WPK_OUTCOME_WRONG_RESULT;
    snprintf(refused->log, sizeof refused->log, "revoked before");
    return refused;
}

/* Right, but outside the search's class on fresh inputs. */
static bool is_outside(const struct wpk_search *search, const struct wpk_record *record)
{
    return record->outcome == WPK_OUTCOME_OK &&
           !wpk_accuracy_admits_fresh(search->accuracy, record->times_direct);
}

/* Reject an entry. One that is only outside the class has not failed: another class may take it. */
static void reject(struct wpk_coordinator *c, struct wpk_search *search,
                   struct wpk_final_entry *entry, const struct wpk_record *record)
{
    char id[WPK_WORK_ID_TEXT_SIZE];
    bool outside = is_outside(search, record);
    print_verify(search, id);
    wpk_effect_log(c, "winner_rejected", "work=%s outcome=%s candidate=\"%.200s\"", id,
                   outside ? "outside_class" : wpk_outcome_name(record->outcome),
                   search->verify.text);
    entry->rejected = true;
    if (strcmp(entry->artifact_sha256, search->served.artifact_sha256) == 0) {
        forget_served(search); /* it need not be beaten */
    }
    if (outside) {
        wpk_asks_lose(search, entry->artifact_sha256);
    } else {
        wpk_asks_reject(search, entry->artifact_sha256, record->outcome);
        wpk_anchor_lost(c, search, entry->artifact_sha256);
    }
}

/* It stands: with its largest errors, over the recorded inputs and the fresh ones. */
static void accept(const struct wpk_search *search, struct wpk_final_entry *entry,
                   const struct wpk_record *record)
{
    entry->verified = true;
    memcpy(entry->verified_by, search->verified_by, sizeof entry->verified_by);
    if (record->error_max > entry->trial.error_max) {
        entry->trial.error_max = record->error_max;
        entry->trial.error_tolerance = record->error_tolerance;
    }
    entry->trial.times_direct = fmax(entry->trial.times_direct, record->times_direct);
    if (record->schedule != NULL) {
        entry->schedule = WPK_DEMAND(strdup(record->schedule));
    }
}

void wpk_final_verified(struct wpk_coordinator *c, struct wpk_search *search,
                        const struct wpk_record *record, const struct wpk_worker *worker)
{
    WPK_ASSERT(search->phase == WPK_SEARCH_PHASE_VERIFYING);
    struct wpk_final_entry *entry = &search->entries[search->verifying];
    snprintf(search->verified_by, sizeof search->verified_by, "%s",
             worker != NULL ? worker->hello.name : "");
    record = entry->rejected ? refuse_revoked(c) : refuse_another(c, search, entry, record);
    if (worker != NULL) {
        wpk_outlier_compare(c, search, entry->worker, entry->timing.median_ns, worker,
                            record->timing.median_ns);
        put_times(c, search, entry, record, worker);
    }
    if (record->outcome == WPK_OUTCOME_OK && !is_outside(search, record)) {
        accept(search, entry, record);
    } else {
        reject(c, search, entry, record);
    }
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
}

void wpk_final_kernel_put(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id)
{
    WPK_ASSERT(search->phase == WPK_SEARCH_PHASE_STORING);
    search->phase = WPK_SEARCH_PHASE_STORED;
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    if (search->winner->rejected) {
        return; /* it is stored as revoked: another one wins */
    }
    search->kernel_id = kernel_id;
    if (search->serving) {
        wpk_verdict_serve(c, search, kernel_id);
    }
}

/* ---- what is lost */

void wpk_final_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact)
{
    bool lost = wpk_asks_lose(search, artifact);
    wpk_anchor_lost(c, search, artifact);
    if (strcmp(search->served.artifact_sha256, artifact) == 0) {
        forget_served(search); /* what is not there need not be beaten */
        lost = true;
    }
    for (uint32_t i = 0; i < search->entry_count; i++) {
        struct wpk_final_entry *entry = &search->entries[i];
        entry->lost = entry->lost || strcmp(entry->artifact_sha256, artifact) == 0;
    }
    if (lost) {
        wpk_effect_log(c, "left_out", "search=%llu artifact=%s reason=lost",
                       (unsigned long long)search->id, artifact);
    }
    if (wpk_final_is_outdated(search)) {
        wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    }
}

/* ---- what operators change */

static void take_served(struct wpk_search *search, const struct wpk_kernel_event *event)
{
    forget_served(search);
    for (uint32_t i = 0; i < event->served_count; i++) {
        const struct wpk_served_kernel *served = &event->served[i];
        if (strcmp(served->accuracy, search->key.accuracy) == 0) {
            search->served = *served;
        }
    }
}

void wpk_final_changed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_kernel_event *event)
{
    for (uint32_t i = 0; i < search->entry_count; i++) {
        struct wpk_final_entry *entry = &search->entries[i];
        entry->rejected = entry->rejected || wpk_revoked_has(&search->revoked, entry->provider,
                                                             entry->artifact_sha256);
    }
    /* A kernel that is about to be stored is served after this, unless it was revoked. */
    if (search->served.kernel_id != WPK_NOT_STORED ||
        wpk_revoked_has(&search->revoked, search->served.provider,
                        search->served.artifact_sha256)) {
        take_served(search, event);
    }
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
}
