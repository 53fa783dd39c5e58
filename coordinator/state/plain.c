/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel: the operator computed directly, in one thread, by code for every supported CPU,
 * in accuracy class strict. A host falls back to it, and it is served when everything else was
 * revoked.
 *
 * A search leases it before its candidates, and does not end before it. The worker that builds it
 * constructs its candidates by number; the first that verifies is taken. It is built once for an
 * operator: a search for another device, under other conditions or with other threads verifies and
 * times the same shared object.
 *
 *     open ──built by a worker that only builds, or known──▶ open to be run ──▶ ended ──revoked──┐
 *      ▲  │                                                       │               ▲              │
 *      │  └──verified and timed───────────────────────────────────│───────────────┘              │
 *      └──────────────── wrong: the next candidate ◀──────────────┴──────────────────────────────┘
 *
 * Each candidate is a trial of the problem: after a restart, those that failed are skipped. */
#include "coordinator/state/final.h"

#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void forget_built(struct wpk_work_item *item)
{
    wpk_built_free(item->built);
    item->built = NULL;
}

static void set_number(struct wpk_plain *plain, uint32_t number)
{
    char text[WPK_PLAIN_CANDIDATE_SIZE];
    wpk_plain_candidate_print(number, text);
    free(plain->item.text);
    plain->item.text = WPK_DEMAND(strdup(text));
    plain->number = number;
}

void wpk_plain_open(struct wpk_search *search, struct wpk_opened *opened)
{
    WPK_ASSERT(opened->plain_number >= 1 && opened->plain_number <= WPK_PLAIN_MAX);
    search->plain = (struct wpk_plain){.item = opened->plain};
    set_number(&search->plain, opened->plain_number);
    memcpy(search->plain.verified_by, opened->plain_verified_by, sizeof opened->plain_verified_by);
    opened->plain.built = NULL;
}

void wpk_plain_fini(struct wpk_search *search)
{
    forget_built(&search->plain.item);
    free(search->plain.item.text);
    search->plain = (struct wpk_plain){0};
}

unsigned wpk_plain_ready(const struct wpk_search *search)
{
    const struct wpk_work_item *item = &search->plain.item;
    if (item->standing != WPK_STANDING_OPEN) {
        return 0;
    }
    return item->built != NULL ? 1U << WPK_QUEUE_RUN : 1U << WPK_QUEUE_BUILD;
}

bool wpk_plain_awaited(const struct wpk_search *search)
{
    if (search->plain.item.standing == WPK_STANDING_ENDED) {
        return false;
    }
    unsigned ready = wpk_plain_ready(search);
    uint32_t count = search->plain.item.standing == WPK_STANDING_LEASED;
    for (const struct wpk_claim *s = search->claims; s != NULL; s = s->search_next) {
        const struct wpk_work_queue *queue = s->owner_queue->queue;
        for (const struct wpk_link *link = queue->links; link != NULL; link = link->queue_next) {
            count += (ready & 1U << queue->stage) != 0 ? link->worker_class->available_count : 0;
        }
    }
    return count > 0;
}

/* The next candidate, unless this was the last one. */
static void try_next(struct wpk_plain *plain)
{
    if (plain->number < WPK_PLAIN_MAX) {
        forget_built(&plain->item);
        plain->item.standing = WPK_STANDING_OPEN;
        plain->item.attempts = 0;
        plain->item.lost_on = 0;
        set_number(plain, plain->number + 1);
    }
}

static void put_trial(struct wpk_coordinator *c, struct wpk_search *search,
                      const struct wpk_record *record, const struct wpk_worker *worker)
{
    struct wpk_plain *plain = &search->plain;
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_TRIAL);
    effect->search = search;
    effect->work = (wpk_work_id){search->id, WPK_WORK_PLAIN, plain->number};
    effect->provider = WPK_PLAIN_PROVIDER;
    effect->item = wpk_work_item_copy(c, &plain->item, plain->item.text);
    effect->record = record;
    effect->worker = worker;
}

void wpk_plain_ended(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_record *record, const struct wpk_worker *worker)
{
    struct wpk_plain *plain = &search->plain;
    record = wpk_revoked_refuse(c, search, "", record);
    plain->item.standing = WPK_STANDING_ENDED;
    plain->item.trial = wpk_trial_summarize(record);
    put_trial(c, search, record, worker);
    if (wpk_plain_works(search)) {
        snprintf(plain->verified_by, sizeof plain->verified_by, "%s",
                 worker != NULL ? worker->hello.name : "");
        return;
    }
    wpk_effect_log(c, "plain_rejected", "search=%llu candidate=%u outcome=%s reason=\"%.200s\"",
                   (unsigned long long)search->id, plain->number,
                   record->outcome == WPK_OUTCOME_OK ? "outside_class"
                                                     : wpk_outcome_name(record->outcome),
                   record->log);
    /* Workers that were lost while they had one candidate may be lost with the next one. */
    if (record->outcome != WPK_OUTCOME_ABANDONED) {
        try_next(plain);
    }
}

bool wpk_plain_works(const struct wpk_search *search)
{
    const struct wpk_work_item *item = &search->plain.item;
    return item->standing == WPK_STANDING_ENDED && item->trial.outcome == WPK_OUTCOME_OK &&
           wpk_accuracy_admits(WPK_ACCURACY_STRICT, item->trial.times_direct);
}

const struct wpk_final_entry *wpk_plain_entry(struct wpk_search *search)
{
    struct wpk_plain *plain = &search->plain;
    const struct wpk_trial_summary *trial = &plain->item.trial;
    if (!wpk_plain_works(search)) {
        return NULL;
    }
    plain->entry = (struct wpk_final_entry){
        .kind = WPK_ENTRY_OWN,
        .candidate = plain->item.text,
        .provider = WPK_PLAIN_PROVIDER,
        .trial = *trial,
        .timing = {.median_ns = trial->median_ns,
                   .min_ns = trial->min_ns,
                   .mad_ns = trial->mad_ns,
                   .sample_count = 1},
    };
    memcpy(plain->entry.artifact_sha256, trial->artifact_sha256, sizeof trial->artifact_sha256);
    memcpy(plain->entry.verified_by, plain->verified_by, sizeof plain->verified_by);
    return &plain->entry;
}

void wpk_plain_revoked(struct wpk_search *search, const char *artifact)
{
    struct wpk_plain *plain = &search->plain;
    if (wpk_plain_works(search) && strcmp(plain->item.trial.artifact_sha256, artifact) == 0) {
        plain->item.trial = (struct wpk_trial_summary){.outcome = WPK_OUTCOME_WRONG_RESULT};
        plain->entry.rejected = true; /* it may be a winner that is being stored */
        try_next(plain);
    }
}
