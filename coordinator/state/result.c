/* SPDX-License-Identifier: Apache-2.0 */
/* Results of workers. The first result for a work item is recorded, whichever lease it names; the
 * senders of later ones are told so. The artifact of a build-only worker is kept in the work item,
 * which is then open for workers that run it.
 *
 *     open ──leased──▶ whole, or build ──built──▶ open to be run ──leased──▶ run ──▶ ended
 *      ▲                     │ not tried              ▲       │ not tried: its artifact is lost
 *      └─────────────────────┴────────────────────────│───────┘
 *
 * A lease without a result counts as an attempt. A work item has WPK_ATTEMPTS_MAX attempts to be
 * built, and as many to be run. */
#include "coordinator/state/lease.h"

#include "common/metrics.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/final.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "schema/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what it cost */

/* Device time of a result, as its record tells: parts of what the worker was busy for. */
static uint64_t weight_of(const struct wpk_result *result)
{
    uint64_t ns = result->record.build_ns + result->record.verify_ns + result->record.measure_ns;
    for (uint32_t i = 0; i < result->timing_count; i++) {
        const struct wpk_timing *timing = &result->timing[i];
        ns += timing->median_ns * (uint64_t)timing->sample_count * (uint64_t)timing->repeat_count;
    }
    return ns + 1;
}

static struct wpk_lease *lease_of(struct wpk_coordinator *c, wpk_work_id work)
{
    struct wpk_search *search = wpk_search_find(c, work.search);
    struct wpk_work_item *item = search != NULL ? wpk_search_work_item(search, work) : NULL;
    return item != NULL && item->standing == WPK_STANDING_LEASED ? item->lease : NULL;
}

/* A message's results and the time to be shared among those of this worker's leases. */
struct bill {
    double ns_per_weight;
};

static struct bill make_bill(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    uint64_t now_ns = c->event->now_ns;
    double busy_ns = now_ns > worker->busy_ns ? (double)(now_ns - worker->busy_ns) : 0;
    double weight = 0;
    for (uint32_t i = 0; i < message->result_count; i++) {
        const struct wpk_lease *lease = lease_of(c, message->results[i].id);
        if (lease != NULL && lease->worker == worker) {
            weight += (double)weight_of(&message->results[i]);
        }
    }
    if (weight > 0) {
        worker->busy_ns = now_ns;
    }
    return (struct bill){weight > 0 ? busy_ns / weight : 0};
}

/* ---- builds */

static void keep_built(struct wpk_search *search, wpk_work_id work, const struct wpk_record *record)
{
    struct wpk_work_item *item = wpk_search_work_item(search, work);
    bool ask = work.kind == WPK_WORK_TRIAL;
    struct wpk_built *built = WPK_DEMAND(calloc(1, sizeof *built));
    memcpy(built->artifact_sha256, record->artifact_sha256, sizeof built->artifact_sha256);
    memcpy(built->schedule_sha256, record->schedule_sha256, sizeof built->schedule_sha256);
    built->build_ns = record->build_ns;
    if (record->schedule != NULL) {
        built->schedule = WPK_DEMAND(strdup(record->schedule));
    }
    built->attempts = item->attempts;
    if (ask) {
        wpk_asks_unopen(search, work.index);
    }
    item->built = built;
    item->attempts = 0; /* running it is another thing to survive */
    item->lost_on = 0;
    if (ask) {
        wpk_asks_open(search, work.index, false);
    }
}

/* To be built once more: what it took the last time still counts. */
static void drop_built(struct wpk_search *search, wpk_work_id work)
{
    struct wpk_work_item *item = wpk_search_work_item(search, work);
    bool ask = work.kind == WPK_WORK_TRIAL;
    if (ask) {
        wpk_asks_unopen(search, work.index);
    }
    item->attempts = item->built->attempts;
    wpk_built_free(item->built);
    item->built = NULL;
    if (ask) {
        wpk_asks_open(search, work.index, true);
    }
}

/* Apart from its run. */
static bool may_be_built(enum wpk_work_kind kind)
{
    return kind == WPK_WORK_TRIAL || kind == WPK_WORK_PLAIN;
}

/* Add the build time and the schedule that its builder reported to the record of a run. */
static const struct wpk_record *merge(struct wpk_coordinator *c, const struct wpk_work_item *item,
                                      const struct wpk_result *result)
{
    const struct wpk_record *record = &result->record;
    const struct wpk_built *built = item->built;
    if (built == NULL || result->stage != WPK_STAGE_RUN) {
        return record;
    }
    struct wpk_record *merged = wpk_effect_memory(c, 1, sizeof *merged);
    *merged = *record;
    merged->build_ns = built->build_ns;
    if (merged->schedule == NULL && built->schedule != NULL) {
        merged->schedule = wpk_effect_text(c, built->schedule);
    }
    if (merged->schedule_sha256[0] == '\0') {
        memcpy(merged->schedule_sha256, built->schedule_sha256, sizeof merged->schedule_sha256);
    }
    return merged;
}

/* ---- results */

static bool is_built(const struct wpk_result *result)
{
    return result->stage == WPK_STAGE_BUILD && result->record.outcome == WPK_OUTCOME_OK;
}

/* A candidate's time that compares with no other of its search. */
static bool lacks_anchor(const struct wpk_search *search, const struct wpk_result *result)
{
    return result->id.kind == WPK_WORK_TRIAL && result->stage != WPK_STAGE_BUILD &&
           result->record.outcome == WPK_OUTCOME_OK && !wpk_anchor_fits(search, &result->record);
}

/* It was not tried, for want of an artifact say; or what was built has got lost; or there was no
 * anchor beside it. */
static bool is_nothing(const struct wpk_search *search, const struct wpk_result *result)
{
    if (result->id.kind == WPK_WORK_FINAL) {
        return result->timing_count != search->entry_count;
    }
    return result->record.outcome == WPK_OUTCOME_ABANDONED || lacks_anchor(search, result) ||
           (is_built(result) && result->record.artifact_sha256[0] == '\0');
}

/* A late result without information does not end another worker's lease. */
static bool is_too_late(const struct wpk_search *search, const struct wpk_work_item *item,
                        const struct wpk_worker *worker, const struct wpk_result *result)
{
    bool leased = item->standing == WPK_STANDING_LEASED;
    if (leased && item->lease->worker == worker) {
        return false;
    }
    return is_nothing(search, result) ||
           (leased && item->lease->stage == WPK_STAGE_WHOLE && is_built(result));
}

/* Another attempt, if there is one left. */
static void try_again(struct wpk_coordinator *c, struct wpk_search *search,
                      const struct wpk_worker *worker, const struct wpk_result *result)
{
    struct wpk_work_item *item = wpk_search_work_item(search, result->id);
    const char *reason = result->id.kind == WPK_WORK_FINAL ? result->failure
                         : is_built(result)                ? "what was built is lost"
                         : result->record.anchor_failed    ? result->record.log
                         : lacks_anchor(search, result)    ? "it was timed without the anchor"
                                                           : result->record.log;
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(result->id, id);
    wpk_effect_log(c, "not_tried", "work=%s attempt=%u stage=%s worker=%s reason=\"%.*s\"", id,
                   item->attempts, wpk_work_stage_name(result->stage), worker->hello.name,
                   (int)strnlen(reason, WPK_COMPLETION_REASON_MAX), reason);
    if (wpk_anchor_failed(c, search, &result->record)) {
        item->attempts--; /* not the candidate's: it runs again, beside another anchor */
        return;
    }
    bool anchor = result->record.anchor_failed || lacks_anchor(search, result);
    item->lost_on = anchor ? item->lost_on : worker->device_hash;
    if (may_be_built(result->id.kind) && item->built != NULL) {
        drop_built(search, result->id);
    }
    if (result->id.kind == WPK_WORK_FINAL && wpk_final_is_outdated(search)) {
        return; /* it is held again without what it failed for */
    }
    if (item->attempts >= WPK_ATTEMPTS_MAX) {
        wpk_completion_abandon(c, search, result->id, reason);
    }
}

/* True for outcomes that a candidate can have before it runs. */
static bool is_of_build(enum wpk_outcome outcome)
{
    switch (outcome) {
    case WPK_OUTCOME_OK:
    case WPK_OUTCOME_BUILD_ERROR:
    case WPK_OUTCOME_BUILD_TIMEOUT:
    case WPK_OUTCOME_UNSUPPORTED:
    case WPK_OUTCOME_OUT_OF_MEMORY:
    case WPK_OUTCOME_ABANDONED:
        return true;
    default:
        return false;
    }
}

static void observe(const struct wpk_record *record)
{
    if (record->build_ns > 0) {
        wpk_metric_observe_ns(WPK_HISTOGRAM_BUILD, record->build_ns);
    }
    if (record->verify_ns + record->measure_ns > 0) {
        wpk_metric_observe_ns(WPK_HISTOGRAM_RUN, record->verify_ns + record->measure_ns);
    }
    if (record->outcome == WPK_OUTCOME_OK && record->timing.median_ns > 0) {
        wpk_metric_observe_ratio(WPK_HISTOGRAM_NOISE,
                                 (double)record->timing.mad_ns / (double)record->timing.median_ns);
    }
}

/* Note how many samples of the result's times the worker took with lowered clocks, of a final all
 * entries' together. */
static void note_throttled(struct wpk_coordinator *c, struct wpk_worker *worker,
                           const struct wpk_result *result)
{
    int throttled = result->record.timing.throttled_count;
    int samples = result->record.timing.sample_count;
    for (uint32_t i = 0; i < result->timing_count; i++) {
        throttled += result->timing[i].throttled_count;
        samples += result->timing[i].sample_count;
    }
    if (samples == 0) {
        return;
    }
    wpk_metric_add(WPK_COUNTER_SAMPLES_THROTTLED, 0, (uint64_t)throttled);
    if ((throttled > 0) != (worker->throttled_count > 0)) {
        wpk_effect_log(c, throttled > 0 ? "worker_throttled" : "worker_not_throttled",
                       "worker=%s samples=%d of=%d", worker->hello.name, throttled, samples);
    }
    worker->throttled_count = throttled;
    worker->sample_count = samples;
}

/* True if the worker may report such a result for the work item, with or without a lease. */
static bool is_admissible(const struct wpk_search *search, const struct wpk_worker *worker,
                          const struct wpk_result *result)
{
    if (!wpk_search_trusts(search, worker, result->stage)) {
        return false; /* times of another device are not this problem's */
    }
    if (result->stage == WPK_STAGE_BUILD) {
        return may_be_built(result->id.kind) && is_of_build(result->record.outcome);
    }
    return result->id.kind != WPK_WORK_VERIFY || !wpk_final_excludes(search, worker);
}

static enum wpk_ack take_result(struct wpk_coordinator *c, struct wpk_worker *worker,
                                const struct wpk_result *result, struct bill bill)
{
    struct wpk_search *search = wpk_search_find(c, result->id.search);
    struct wpk_work_item *item = search != NULL ? wpk_search_work_item(search, result->id) : NULL;
    bool told = search != NULL && result->id.kind == WPK_WORK_TRIAL &&
                result->id.index < search->told_count;
    if ((item == NULL && !told) || !is_admissible(search, worker, result)) {
        return WPK_ACK_UNKNOWN;
    }
    if (told || item->standing == WPK_STANDING_ENDED ||
        (result->stage == WPK_STAGE_BUILD && item->built != NULL)) {
        wpk_metric_add(WPK_COUNTER_RESULTS_REPEATED, 0, 1);
        return WPK_ACK_ALREADY_RECORDED;
    }
    if (is_too_late(search, item, worker, result)) {
        return WPK_ACK_UNKNOWN;
    }
    bool nothing = is_nothing(search, result);
    bool untold = lacks_anchor(search, result);
    if (item->standing == WPK_STANDING_LEASED) {
        bool own = item->lease->worker == worker;
        double ns = own ? bill.ns_per_weight * (double)weight_of(result) : 0;
        wpk_lease_end(c, item->lease, (uint64_t)ns);
    }
    observe(&result->record);
    note_throttled(c, worker, result);
    wpk_steadiness_note(c, worker, result);
    if (nothing) {
        try_again(c, search, worker, result);
    } else if (result->id.kind == WPK_WORK_FINAL) {
        wpk_final_timed(c, search, result->timing, worker);
    } else if (is_built(result)) {
        keep_built(search, result->id, &result->record);
    } else {
        const struct wpk_record *record = merge(c, item, result);
        wpk_completion_take(c, search, result->id, record, worker);
    }
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    return untold ? WPK_ACK_UNKNOWN : WPK_ACK_RECORDED;
}

static void refuse_quarantined(struct wpk_coordinator *c, const struct wpk_worker *worker)
{
    char *text = wpk_effect_memory(c, 1, WPK_REASON_MAX + 64);
    snprintf(text, WPK_REASON_MAX + 64, "this worker is quarantined, its results are refused%s%s",
             worker->admin_reason[0] != '\0' ? ": " : "", worker->admin_reason);
    wpk_reply_error(c, WPK_EACCES, text);
}

void wpk_result_message(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    if (worker->admin_state == WPK_ADMIN_STATE_QUARANTINE) {
        refuse_quarantined(c, worker);
        return;
    }
    enum wpk_ack *acks = wpk_effect_memory(c, message->result_count + 1, sizeof *acks);
    struct bill bill = make_bill(c, worker);
    for (uint32_t i = 0; i < message->result_count; i++) {
        acks[i] = take_result(c, worker, &message->results[i], bill);
    }
    wpk_reply_acks(c, acks, message->result_count);
}

bool wpk_result_takes_artifact(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    if (worker->admin_state == WPK_ADMIN_STATE_QUARANTINE) {
        refuse_quarantined(c, worker);
        return false;
    }
    if ((worker->hello.roles & WPK_WORKER_BUILDS) == 0) {
        wpk_reply_error(c, WPK_EACCES, "this worker does not build, and uploads nothing");
        return false;
    }
    struct wpk_lease *lease = lease_of(c, message->made_for);
    if (lease == NULL || lease->worker != worker || lease->stage == WPK_STAGE_RUN ||
        !may_be_built(message->made_for.kind)) {
        wpk_reply_error(c, WPK_EINVAL, "this worker has no open lease to build that work item");
        return false;
    }
    uint64_t artifact = wpk_table_hash(message->sha256);
    if (lease->artifact != 0 && lease->artifact != artifact) {
        wpk_reply_error(c, WPK_EINVAL, "another artifact was uploaded for this lease");
        return false;
    }
    lease->artifact = artifact;
    return true;
}
