/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/lease.h"

#include "common/format.h"
#include "common/metrics.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/final.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- taking */

/* The stage that a worker gets: an artifact that exists is run; otherwise a worker that can run
 * does both. */
static enum wpk_work_stage stage_of(const struct wpk_work_item *item, wpk_work_id work,
                                    const struct wpk_worker *worker)
{
    if (work.kind == WPK_WORK_FINAL || work.kind == WPK_WORK_VENDOR) {
        return WPK_STAGE_WHOLE;
    }
    if (item->built != NULL) {
        return WPK_STAGE_RUN;
    }
    bool runs = (worker->hello.roles & WPK_WORKER_RUNS) != 0 && !worker->steadiness.only_builds;
    return runs ? WPK_STAGE_WHOLE : WPK_STAGE_BUILD;
}

struct wpk_lease *wpk_lease_take(struct wpk_coordinator *c, struct wpk_search *search,
                                 wpk_work_id work, struct wpk_worker *worker, struct wpk_flow *flow)
{
    struct wpk_work_item *item = wpk_search_work_item(search, work);
    WPK_ASSERT(item != NULL && item->standing == WPK_STANDING_OPEN);
    if (work.kind == WPK_WORK_TRIAL) {
        wpk_asks_unopen(search, work.index);
    }
    struct wpk_lease *lease = c->leases_spare;
    if (lease != NULL) {
        c->leases_spare = lease->next;
    } else {
        lease = WPK_DEMAND(malloc(sizeof *lease));
    }
    *lease = (struct wpk_lease){.number = ++c->lease_next,
                                .worker = worker,
                                .search = search,
                                .work = work,
                                .stage = stage_of(item, work, worker),
                                .flow = flow};
    if (worker->lease_count == 0) {
        worker->busy_ns = c->event->now_ns;
    }
    lease->prev = worker->leases_last;
    *(worker->leases_last != NULL ? &worker->leases_last->next : &worker->leases) = lease;
    worker->leases_last = lease;
    worker->lease_count++;
    item->standing = WPK_STANDING_LEASED;
    item->lease = lease;
    item->attempts++;
    c->lease_count++;
    if (search->leased_count++ == 0) {
        search->active_ns = c->event->now_ns;
    }
    wpk_fair_charge(c, lease);
    wpk_metric_add(WPK_COUNTER_LEASES, 0, 1);
    return lease;
}

/* ---- ending */

void wpk_lease_end(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns)
{
    struct wpk_search *search = lease->search;
    struct wpk_work_item *item = wpk_search_work_item(search, lease->work);
    WPK_ASSERT(item != NULL && item->lease == lease);
    wpk_fair_settle(c, lease, device_ns);
    struct wpk_worker *worker = lease->worker;
    *(lease->prev != NULL ? &lease->prev->next : &worker->leases) = lease->next;
    *(lease->next != NULL ? &lease->next->prev : &worker->leases_last) = lease->prev;
    WPK_ASSERT(worker->lease_count > 0);
    worker->lease_count--;
    item->standing = WPK_STANDING_OPEN;
    item->lease = NULL;
    if (lease->work.kind == WPK_WORK_TRIAL) {
        wpk_asks_open(search, lease->work.index, true);
    }
    c->lease_count--;
    WPK_ASSERT(search->leased_count > 0);
    wpk_mark_search(c, search, WPK_SEARCH_STORE);
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    if (--search->leased_count == 0) {
        search->elapsed_ns = wpk_search_elapsed_ns(search, c->event->now_ns);
        search->active_ns = 0;
    }
    lease->next = c->leases_spare;
    c->leases_spare = lease;
}

void wpk_lease_return(struct wpk_coordinator *c, struct wpk_lease *lease)
{
    struct wpk_search *search = lease->search;
    struct wpk_work_item *item = wpk_search_work_item(search, lease->work);
    wpk_lease_end(c, lease, 0);
    item->attempts--;
}

static void note_failure(struct wpk_search *search, const struct wpk_record *record)
{
    if (record->outcome != WPK_OUTCOME_OK && record->log[0] != '\0') {
        size_t size = strcspn(record->log, "\n");
        size = size < sizeof search->failure ? size : sizeof search->failure - 1;
        size = wpk_utf8_check(record->log, size); /* no half character */
        snprintf(search->failure, sizeof search->failure, "%.*s", (int)size, record->log);
        for (char *p = search->failure; *p != '\0'; p++) {
            *p = (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p; /* it is shown on terminals */
        }
    }
}

/* The artifact that was built for the run that has ended, NULL if it is one of the best now. */
static const char *spent_by(struct wpk_coordinator *c, const struct wpk_search *search,
                            const struct wpk_work_item *item)
{
    for (uint32_t i = 0; item->built != NULL && i < search->best_count; i++) {
        if (strcmp(search->best[i].trial.artifact_sha256, item->built->artifact_sha256) == 0) {
            return NULL;
        }
    }
    return item->built != NULL ? wpk_effect_text(c, item->built->artifact_sha256) : NULL;
}

void wpk_completion_take(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                         const struct wpk_record *record, const struct wpk_worker *worker)
{
    struct wpk_work_item *item = wpk_search_work_item(search, work);
    bool own = work.kind == WPK_WORK_TRIAL;
    WPK_ASSERT(item != NULL && work.kind != WPK_WORK_FINAL);
    WPK_ASSERT(item->standing == WPK_STANDING_OPEN); /* its lease has ended */
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    if (work.kind == WPK_WORK_PLAIN) {
        wpk_plain_ended(c, search, record, worker);
        return;
    }
    if (own) {
        wpk_asks_unopen(search, work.index);
    }
    if (work.kind != WPK_WORK_VERIFY) {
        record = wpk_revoked_refuse(c, search, own ? "" : item->text, record);
    }
    if (own) {
        record = wpk_anchor_apply(c, search, record);
    }
    item->standing = WPK_STANDING_ENDED;
    item->trial = wpk_trial_summarize(record);
    if (work.kind == WPK_WORK_VENDOR) {
        search->vendor_workers[work.index] = worker != NULL ? worker->name_hash : 0;
    }
    if (work.kind == WPK_WORK_VERIFY) {
        wpk_final_verified(c, search, record, worker);
        return;
    }
    search->measured = true;
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_TRIAL);
    effect->search = search;
    effect->work = work;
    effect->provider =
        own ? wpk_search_key_provider(c, search, item->text) : wpk_effect_text(c, item->text);
    effect->item = wpk_work_item_copy(c, item, own ? item->text : "");
    effect->record = record;
    effect->worker = worker;
    wpk_metric_add(WPK_COUNTER_TRIALS, (uint32_t)record->outcome, 1);
    if (own) {
        note_failure(search, record);
        wpk_asks_count(search, work.index, worker != NULL ? worker->name_hash : 0);
        effect->spent = spent_by(c, search, item);
        wpk_asks_tell(c, search);
    }
}

void wpk_completion_abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                            const char *why)
{
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(work, id);
    wpk_effect_log(c, "abandoned", "work=%s", id);
    if (work.kind == WPK_WORK_FINAL) {
        wpk_final_timed(c, search, NULL, NULL);
        return;
    }
    struct wpk_record *record = wpk_effect_memory(c, 1, sizeof *record);
    record->outcome = WPK_OUTCOME_ABANDONED;
    if (why == NULL) {
        snprintf(record->log, sizeof record->log, "%d workers were lost while they had it",
                 WPK_ATTEMPTS_MAX);
    } else {
        size_t size = wpk_utf8_check(why, strcspn(why, "\n")); /* no half character */
        snprintf(record->log, sizeof record->log, "not tried in %d attempts; the last one: %.*s",
                 WPK_ATTEMPTS_MAX,
                 size < WPK_COMPLETION_REASON_MAX ? (int)size : WPK_COMPLETION_REASON_MAX, why);
    }
    wpk_completion_take(c, search, work, record, NULL);
}

static struct wpk_lease *find_to_blame(const struct wpk_worker *worker)
{
    for (struct wpk_lease *lease = worker->leases; lease != NULL; lease = lease->next) {
        if (lease->number == worker->running) {
            return lease;
        }
    }
    return worker->leases; /* the oldest: work is done in its order */
}

/* It cost what it was worked on, and whoever takes it next is one attempt nearer to the last. */
static void blame(struct wpk_coordinator *c, struct wpk_worker *worker, struct wpk_lease *lease)
{
    struct wpk_search *search = lease->search;
    wpk_work_id work = lease->work;
    uint32_t attempts = wpk_search_work_item(search, work)->attempts;
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(work, id);
    wpk_effect_log(c, "blamed", "work=%s lease=%llu attempt=%u stage=%s worker=%s", id,
                   (unsigned long long)lease->number, attempts, wpk_work_stage_name(lease->stage),
                   worker->hello.name);
    uint64_t worked_ns =
        worker->heard_ns > worker->busy_ns ? worker->heard_ns - worker->busy_ns : 0;
    wpk_lease_end(c, lease, worked_ns);
    wpk_search_work_item(search, work)->lost_on = worker->device_hash;
    if (attempts >= WPK_ATTEMPTS_MAX) {
        wpk_completion_abandon(c, search, work, NULL);
    }
}

void wpk_loss_return_all(struct wpk_coordinator *c, struct wpk_worker *worker, bool died)
{
    struct wpk_lease *blamed = died ? find_to_blame(worker) : NULL;
    if (died) {
        wpk_metric_add(WPK_COUNTER_LEASES_EXPIRED, 0, worker->lease_count);
    }
    /* From the last on: each is put before those that are open, and so they keep their order. */
    for (struct wpk_lease *lease = worker->leases_last, *prev; lease != NULL; lease = prev) {
        prev = lease->prev;
        if (lease != blamed) {
            wpk_lease_return(c, lease);
        }
    }
    if (blamed != NULL) {
        blame(c, worker, blamed);
    }
    WPK_ASSERT(worker->lease_count == 0);
}

static uint64_t limit_ns(const struct wpk_lease *lease)
{
    uint64_t ms = WPK_RUN_LIMIT_MS;
    if (lease->work.kind == WPK_WORK_FINAL) {
        ms += (uint64_t)lease->search->entry_count * WPK_FINAL_ROUNDS * WPK_FINAL_TURN_MS;
    }
    return ms * UINT64_C(1000000);
}

void wpk_loss_watch(struct wpk_coordinator *c, struct wpk_worker *worker, uint64_t running)
{
    uint64_t now_ns = c->event->now_ns;
    if (running == 0 || running != worker->running) {
        worker->running = running;
        worker->running_ns = now_ns;
        worker->stuck = false;
        return;
    }
    struct wpk_lease *lease = find_to_blame(worker);
    if (worker->stuck || lease == NULL || now_ns < worker->running_ns + limit_ns(lease)) {
        return;
    }
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(lease->work, id);
    wpk_effect_warn(c, "worker_stuck", "work=%s worker=%s s=%llu leases=%u", id, worker->hello.name,
                    (unsigned long long)((now_ns - worker->running_ns) / UINT64_C(1000000000)),
                    worker->lease_count);
    worker->stuck = true;
    wpk_loss_return_all(c, worker, true);
}
