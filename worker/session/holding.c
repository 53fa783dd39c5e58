/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/holding.h"

#include "common/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIM_EVERY 64 /* results acknowledged */

struct wpk_holding *wpk_holding_new(const struct wpk_holding_options *options)
{
    struct wpk_holding *holding = WPK_DEMAND(calloc(1, sizeof *holding));
    holding->options = *options;
    holding->order_next = 1;
    return holding;
}

void wpk_holding_free(struct wpk_holding *holding)
{
    if (holding == NULL) {
        return;
    }
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        if (holding->items[i].standing != WPK_HOLDING_FREE) {
            wpk_holding_forget(holding, &holding->items[i]);
        }
    }
    free(holding);
}

/* ---- taking in */

static struct wpk_holding_item *find(struct wpk_holding *holding, wpk_work_id id)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct wpk_holding_item *item = &holding->items[i];
        if (item->standing != WPK_HOLDING_FREE && wpk_work_id_equal(item->work.id, id)) {
            return item;
        }
    }
    return NULL;
}

static void copy_work(struct wpk_holding_item *item, const struct wpk_work *work,
                      const struct wpk_message *message)
{
    const struct wpk_message_op *op = &message->ops[work->op];
    item->work = *work;
    item->op = strdup(op->text);
    item->layouts = strdup(op->layouts);
    item->provider = strdup(work->provider);
    item->candidate = strdup(work->candidate);
    WPK_ASSERT(item->op != NULL && item->layouts != NULL);
    WPK_ASSERT(item->provider != NULL && item->candidate != NULL);
    if (work->stage == WPK_STAGE_BUILD) {
        item->target = message->targets[work->target];
    }
    if (work->stage == WPK_STAGE_RUN) {
        snprintf(item->artifact_sha256, WPK_ID_MAX, "%s", work->artifact_sha256);
    }
    if (work->anchor_sha256 != NULL && work->stage != WPK_STAGE_BUILD) {
        snprintf(item->anchor_sha256, WPK_ID_MAX, "%s", work->anchor_sha256);
    }
    for (uint32_t i = 0; i < work->contender_count; i++) {
        snprintf(item->contender_provider[i], WPK_PROVIDER_NAME_MAX, "%s",
                 work->contenders[i].provider);
        snprintf(item->contender_sha256[i], WPK_ID_MAX, "%s", work->contenders[i].artifact_sha256);
    }
}

static void take_in(struct wpk_holding *holding, const struct wpk_work *work,
                    const struct wpk_message *message)
{
    struct wpk_holding_item *item = NULL;
    for (int i = 0; i < WPK_HOLDING_MAX && item == NULL; i++) {
        item = holding->items[i].standing == WPK_HOLDING_FREE ? &holding->items[i] : NULL;
    }
    if (item == NULL) {
        return; /* the next poll does not name it, and it is leased to somebody else */
    }
    item->standing = WPK_HOLDING_WAITING;
    item->order = holding->order_next++;
    copy_work(item, work, message);
    wpk_work_id_print(work->id, item->name);
    holding->count++;
    wpk_log(WPK_LOG_DEBUG, "taken", "work=%s lease=%llu stage=%s attempt=%u trial=%llu", item->name,
            (unsigned long long)work->lease, wpk_work_stage_name(work->stage), work->attempt,
            (unsigned long long)item->order);
}

void wpk_holding_take_in(struct wpk_holding *holding, const struct wpk_message *work)
{
    for (uint32_t i = 0; i < work->work_count; i++) {
        struct wpk_holding_item *item = find(holding, work->work[i].id);
        if (item == NULL) {
            take_in(holding, &work->work[i], work);
        } else {
            item->work.lease = work->work[i].lease; /* given again: its number is another */
        }
    }
}

/* ---- looking */

uint32_t wpk_holding_unfinished(const struct wpk_holding *holding)
{
    uint32_t count = 0;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        count += wpk_holding_is_unfinished(&holding->items[i]);
    }
    return count;
}

uint32_t wpk_holding_ids(const struct wpk_holding *holding, bool unfinished_only, wpk_work_id *ids)
{
    uint32_t count = 0;
    bool unfinished_too = unfinished_only || !holding->blocked;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct wpk_holding_item *item = &holding->items[i];
        bool unfinished = wpk_holding_is_unfinished(item);
        if (unfinished ? unfinished_too : !unfinished_only && item->standing != WPK_HOLDING_FREE) {
            ids[count++] = item->work.id;
        }
    }
    return count;
}

/* ---- results */

uint32_t wpk_holding_results(struct wpk_holding *holding, struct wpk_result *results, uint32_t max)
{
    uint32_t count = 0;
    WPK_ASSERT(max <= WPK_WORK_MAX);
    for (int i = 0; i < WPK_HOLDING_MAX && count < max; i++) {
        struct wpk_holding_item *item = &holding->items[i];
        if (item->standing != WPK_HOLDING_ENDED || !item->uploaded) {
            continue;
        }
        struct wpk_result *result = &results[count++];
        memset(result, 0, sizeof *result);
        result->id = item->work.id;
        result->lease = item->work.lease;
        result->stage = item->work.stage;
        result->attempt = item->work.attempt;
        result->record = item->record;       /* borrowed */
        result->record.artifact_path = NULL; /* of this machine */
        if (item->work.id.kind != WPK_WORK_VERIFY) {
            result->record.schedule = NULL; /* of a winner only: its hash is enough for the rest */
        }
        memcpy(result->timing, item->timing, sizeof result->timing);
        result->timing_count = item->timing_count;
        result->failure = item->failure;
        item->standing = WPK_HOLDING_SENT;
    }
    return count;
}

wpk_err wpk_holding_encode_results(struct wpk_holding *holding, uint64_t session,
                                   struct wpk_buf *frame, uint32_t *count)
{
    struct wpk_result results[WPK_WORK_MAX];
    wpk_err err = WPK_ENOSPC;
    uint32_t max = WPK_WORK_MAX;
    for (bool whole = true; err == WPK_ENOSPC && max > 0;) {
        *count = wpk_holding_results(holding, results, max);
        if (*count == 0) {
            return WPK_OK;
        }
        if (!whole) {
            results[0].record.schedule = NULL; /* the holding's stays */
        }
        const struct wpk_message message = {.kind = WPK_MESSAGE_RESULTS,
                                            .session = session,
                                            .results = results,
                                            .result_count = *count};
        wpk_buf_reset(frame);
        err = wpk_message_encode(&message, frame);
        if (err == WPK_OK) {
            wpk_message_trace("brought", &message, NULL);
        }
        if (err == WPK_ENOSPC) {
            wpk_holding_not_acknowledged(holding);
            max = *count > 1 ? *count / 2 : whole ? 1 : 0;
            whole = *count > 1;
        }
    }
    return err;
}

void wpk_holding_acknowledged(struct wpk_holding *holding)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        if (holding->items[i].standing == WPK_HOLDING_SENT) {
            wpk_holding_forget(holding, &holding->items[i]);
            holding->since_trim++;
        }
    }
    if (holding->since_trim >= TRIM_EVERY) {
        holding->since_trim = 0;
        wpk_holding_trim(holding);
    }
}

void wpk_holding_not_acknowledged(struct wpk_holding *holding)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        if (holding->items[i].standing == WPK_HOLDING_SENT) {
            holding->items[i].standing = WPK_HOLDING_ENDED;
        }
    }
}
