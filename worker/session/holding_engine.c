/* SPDX-License-Identifier: Apache-2.0 */
/* Leases on their way through the engine. */
#include "worker/session/holding.h"

#include "common/clock.h"
#include "common/log.h"

#include <stdio.h>
#include <string.h>

#define DEVICE_WAIT_NS (60 * WPK_NS_PER_S) /* then others may do what waits for the device */

static struct wpk_holding_item *first(struct wpk_holding *holding,
                                      enum wpk_holding_standing standing)
{
    struct wpk_holding_item *oldest = NULL;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct wpk_holding_item *item = &holding->items[i];
        if (item->standing == standing && (oldest == NULL || item->order < oldest->order)) {
            oldest = item;
        }
    }
    return oldest;
}

static void put(struct wpk_holding *holding, struct wpk_holding_item *item)
{
    char path[WPK_HOLDING_PATH_SIZE];
    char anchor[WPK_HOLDING_PATH_SIZE];
    wpk_holding_artifact_path(holding, item->artifact_sha256, path);
    wpk_holding_artifact_path(holding, item->anchor_sha256, anchor);
    struct wpk_trial trial = {
        .id = item->order,
        .work = item->name,
        .op = item->op,
        .layouts = item->layouts,
        .provider = item->provider,
        .candidate = item->candidate,
        .plain = item->work.id.kind == WPK_WORK_PLAIN ? (int)item->work.id.index : 0,
        .policy = item->work.policy,
        .incumbent_ns = item->work.incumbent_ns,
        .accuracy = item->work.accuracy,
        .final = item->work.id.kind != WPK_WORK_TRIAL,
        .keep_artifact = item->work.keep_artifact,
        .build_only = item->work.stage == WPK_STAGE_BUILD,
        .target = item->work.stage == WPK_STAGE_BUILD ? &item->target : NULL,
        .artifact = item->artifact_sha256[0] != '\0' ? path : NULL,
        .build_ns = item->work.build_ns,
        .anchor = item->anchor_sha256[0] != '\0' ? anchor : NULL,
        .incumbent_ratio = item->work.incumbent_ratio,
    };
    wpk_err err = wpk_engine_put(holding->options.engine, &trial);
    if (err == WPK_OK) {
        item->standing = WPK_HOLDING_IN_ENGINE;
    } else if (err != WPK_ENOSPC) {
        wpk_holding_fail(item, WPK_OUTCOME_UNSUPPORTED, "the engine does not take it", err);
    }
}

static bool has_failed(const struct wpk_holding *holding)
{
    return wpk_engine_failure(holding->options.engine)->text[0] != '\0';
}

static void begin_duel(struct wpk_holding *holding, struct wpk_holding_item *item)
{
    char paths[WPK_CONTENDERS_MAX][WPK_HOLDING_PATH_SIZE];
    const char *names[WPK_CONTENDERS_MAX];
    struct wpk_diag diag = {0};
    uint32_t count = item->work.contender_count;
    for (uint32_t i = 0; i < count; i++) {
        wpk_holding_artifact_path(holding, item->contender_sha256[i], paths[i]);
        names[i] = item->contender_sha256[i][0] != '\0' ? paths[i] : item->contender_provider[i];
    }
    const struct wpk_duel duel = {.work = item->name,
                                  .op = item->op,
                                  .layouts = item->layouts,
                                  .paths = names,
                                  .count = (int)count,
                                  .policy = &item->work.policy,
                                  .round_count = (int)item->work.round_count};
    wpk_err err = wpk_engine_duel_begin(holding->options.engine, &duel, &diag);
    if (err == WPK_OK) {
        item->standing = WPK_HOLDING_DUELLING;
    } else if (err != WPK_EBUSY && !has_failed(holding)) {
        wpk_holding_fail_final(item, diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
    }
}

static void end_duel(struct wpk_holding *holding)
{
    struct wpk_diag diag = {0};
    struct wpk_holding_item *item = first(holding, WPK_HOLDING_DUELLING);
    if (item == NULL) {
        return;
    }
    wpk_err err = wpk_engine_duel_end(holding->options.engine, item->timing, &diag);
    if (err == WPK_EBUSY || has_failed(holding)) {
        return; /* it goes on; or it is given back */
    }
    if (err != WPK_OK) {
        wpk_holding_fail_final(item, diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        return;
    }
    if (diag.text[0] != '\0') {
        wpk_log(WPK_LOG_WARN, "contender_failed", "work=%s reason=\"%.300s\"", item->name,
                diag.text);
    }
    item->timing_count = item->work.contender_count;
    item->standing = WPK_HOLDING_ENDED;
    item->uploaded = true;
    wpk_holding_log_ended(item, "ok", "");
}

/* The oldest that waits, of those that came after `order`. */
static struct wpk_holding_item *next_waiting(struct wpk_holding *holding, uint64_t order)
{
    struct wpk_holding_item *next = NULL;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct wpk_holding_item *item = &holding->items[i];
        if (item->standing == WPK_HOLDING_WAITING && item->order > order &&
            (next == NULL || item->order < next->order)) {
            next = item;
        }
    }
    return next;
}

/* A final is timed alone: what came before it ends first, and what came after it waits. */
static void put_all(struct wpk_holding *holding)
{
    struct wpk_holding_item *item =
        first(holding, WPK_HOLDING_DUELLING) != NULL ? NULL : next_waiting(holding, 0);
    while (item != NULL) {
        uint64_t order = item->order;
        bool here = wpk_holding_missing_of(holding, item) == NULL;
        if (item->work.id.kind == WPK_WORK_FINAL) {
            if (here && first(holding, WPK_HOLDING_IN_ENGINE) == NULL && !has_failed(holding)) {
                begin_duel(holding, item);
            }
            if (item->standing != WPK_HOLDING_ENDED) {
                return;
            }
        } else if (here) {
            put(holding, item);
            if (item->standing == WPK_HOLDING_WAITING) {
                return; /* the engine is full */
            }
        }
        item = next_waiting(holding, order);
    }
}

static void take_out(struct wpk_holding *holding)
{
    uint64_t order;
    struct wpk_record record = {0};
    while (wpk_engine_take(holding->options.engine, &order, &record) == WPK_OK) {
        for (int i = 0; i < WPK_HOLDING_MAX; i++) {
            struct wpk_holding_item *item = &holding->items[i];
            if (item->standing == WPK_HOLDING_IN_ENGINE && item->order == order) {
                item->standing = WPK_HOLDING_ENDED;
                item->record = record;
                if (record.anchor_ratio > 0 || record.anchor_failed) {
                    memcpy(item->record.anchor_sha256, item->anchor_sha256, WPK_ID_MAX);
                }
                wpk_holding_log_ended(item, wpk_outcome_name(record.outcome), record.log);
                item->uploaded = record.artifact_path == NULL;
                if (item->uploaded) {
                    /* Without a file to upload, the artifact is its builder's, or there is none. */
                    bool ok = record.outcome == WPK_OUTCOME_OK;
                    snprintf(item->record.artifact_sha256, WPK_ID_MAX, "%s",
                             ok ? item->artifact_sha256 : "");
                }
                memset(&record, 0, sizeof record);
            }
        }
        wpk_record_fini(&record);
    }
}

wpk_err wpk_holding_advance(struct wpk_holding *holding, uint64_t *next_ms)
{
    put_all(holding);
    wpk_err err = wpk_engine_advance(holding->options.engine, next_ms);
    take_out(holding);
    end_duel(holding);
    uint64_t wanted_ns = wpk_engine_device_wanted_ns(holding->options.engine);
    holding->blocked =
        wanted_ns != 0 && wpk_clock_now_ns(holding->options.clock) >= wanted_ns + DEVICE_WAIT_NS;
    /* An item that has just ended may be the last one that a final waited for. */
    put_all(holding);
    return err;
}

uint64_t wpk_holding_running(const struct wpk_holding *holding)
{
    if (holding->blocked) {
        return 0;
    }
    uint64_t order = wpk_engine_running(holding->options.engine);
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct wpk_holding_item *item = &holding->items[i];
        if (item->standing == WPK_HOLDING_DUELLING ||
            (item->standing == WPK_HOLDING_IN_ENGINE && item->order == order)) {
            return item->work.lease;
        }
    }
    return 0;
}
