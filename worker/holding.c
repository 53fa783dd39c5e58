/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/holding.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096

enum standing {
    FREE,
    WAITING,
    IN_ENGINE,
    ENDED,
    SENT,
};

struct item {
    enum standing standing;
    uint64_t order;       /* of arrival; the engine's id */
    struct wpk_work work; /* texts owned below */
    char *op;
    char *layouts;
    char *provider;
    char *candidate;
    char contender_provider[WPK_CONTENDERS_MAX][WPK_PROVIDER_NAME_MAX];
    char contender_sha256[WPK_CONTENDERS_MAX][WPK_ID_MAX];
    struct wpk_record record; /* ENDED, SENT */
    bool uploaded;            /* its artifact, or there is none to be sent */
    struct wpk_timing timing[WPK_CONTENDERS_MAX];
    uint32_t timing_count;
    char failure[WPK_DIAG_TEXT_MAX];
};

struct wpk_holding {
    struct wpk_holding_options options;
    uint64_t order_next;
    struct item items[WPK_HOLDING_MAX];
    uint32_t count; /* not FREE */
};

wpk_err wpk_holding_new(const struct wpk_holding_options *options, struct wpk_holding **out)
{
    struct wpk_holding *holding = calloc(1, sizeof *holding);
    if (holding == NULL) {
        return WPK_ENOMEM;
    }
    holding->options = *options;
    holding->order_next = 1;
    *out = holding;
    return WPK_OK;
}

static void forget(struct wpk_holding *holding, struct item *item)
{
    wpk_record_fini(&item->record);
    free(item->op);
    free(item->layouts);
    free(item->provider);
    free(item->candidate);
    memset(item, 0, sizeof *item);
    holding->count--;
}

void wpk_holding_free(struct wpk_holding *holding)
{
    if (holding == NULL) {
        return;
    }
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        if (holding->items[i].standing != FREE) {
            forget(holding, &holding->items[i]);
        }
    }
    free(holding);
}

/* ---- taking in */

static struct item *find(struct wpk_holding *holding, wpk_work_id id)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct item *item = &holding->items[i];
        if (item->standing != FREE && wpk_work_id_equal(item->work.id, id)) {
            return item;
        }
    }
    return NULL;
}

static void take_in(struct wpk_holding *holding, const struct wpk_work *work,
                    const struct wpk_message_op *op)
{
    struct item *item = NULL;
    for (int i = 0; i < WPK_HOLDING_MAX && item == NULL; i++) {
        item = holding->items[i].standing == FREE ? &holding->items[i] : NULL;
    }
    if (item == NULL) {
        return; /* the next poll does not name it, and it is leased to somebody else */
    }
    item->standing = WAITING;
    item->order = holding->order_next++;
    item->work = *work;
    item->op = strdup(op->text);
    item->layouts = strdup(op->layouts);
    item->provider = strdup(work->provider);
    item->candidate = strdup(work->candidate);
    WPK_ASSERT(item->op != NULL && item->layouts != NULL);
    WPK_ASSERT(item->provider != NULL && item->candidate != NULL);
    for (uint32_t i = 0; i < work->contender_count; i++) {
        snprintf(item->contender_provider[i], WPK_PROVIDER_NAME_MAX, "%s",
                 work->contenders[i].provider);
        snprintf(item->contender_sha256[i], WPK_ID_MAX, "%s", work->contenders[i].artifact_sha256);
    }
    holding->count++;
}

void wpk_holding_take_in(struct wpk_holding *holding, const struct wpk_message *work)
{
    for (uint32_t i = 0; i < work->work_count; i++) {
        if (find(holding, work->work[i].id) == NULL) {
            take_in(holding, &work->work[i], &work->ops[work->work[i].op]);
        }
    }
}

/* ---- through the engine */

static struct item *first(struct wpk_holding *holding, enum standing standing)
{
    struct item *oldest = NULL;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct item *item = &holding->items[i];
        if (item->standing == standing && (oldest == NULL || item->order < oldest->order)) {
            oldest = item;
        }
    }
    return oldest;
}

static void fail_item(struct item *item, wpk_err err)
{
    item->standing = ENDED;
    item->uploaded = true;
    item->record.outcome = WPK_OUTCOME_UNSUPPORTED;
    snprintf(item->record.log, sizeof item->record.log, "the engine does not take it: %s",
             wpk_err_text(err));
}

static void put(struct wpk_holding *holding, struct item *item)
{
    struct wpk_trial trial = {
        .id = item->order,
        .op = item->op,
        .layouts = item->layouts,
        .provider = item->provider,
        .candidate = item->candidate,
        .policy = item->work.policy,
        .incumbent_ns = item->work.incumbent_ns,
        .keep_artifact = item->work.keep_artifact,
    };
    wpk_err err = wpk_engine_put(holding->options.engine, &trial);
    if (err == WPK_OK) {
        item->standing = IN_ENGINE;
    } else if (err != WPK_ENOSPC) {
        fail_item(item, err);
    }
}

static void artifact_path(const struct wpk_holding *holding, const char *sha256,
                          char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%s/artifacts/%s.so", holding->options.work_dir, sha256);
}

static const char *missing_of(const struct wpk_holding *holding, const struct item *item)
{
    char path[PATH_SIZE];
    for (uint32_t i = 0; i < item->work.contender_count; i++) {
        artifact_path(holding, item->contender_sha256[i], path);
        if (item->contender_sha256[i][0] != '\0' && access(path, R_OK) != 0) {
            return item->contender_sha256[i];
        }
    }
    return NULL;
}

static bool needs(const struct item *item, const char *sha256)
{
    for (uint32_t i = 0; i < item->work.contender_count; i++) {
        if (strcmp(item->contender_sha256[i], sha256) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_failed(const struct wpk_holding *holding)
{
    return wpk_engine_failure(holding->options.engine)->text[0] != '\0';
}

static void hold_duel(struct wpk_holding *holding, struct item *item)
{
    char paths[WPK_CONTENDERS_MAX][PATH_SIZE];
    const char *names[WPK_CONTENDERS_MAX];
    struct wpk_diag diag = {0};
    uint32_t count = item->work.contender_count;
    for (uint32_t i = 0; i < count; i++) {
        artifact_path(holding, item->contender_sha256[i], paths[i]);
        names[i] = item->contender_sha256[i][0] != '\0' ? paths[i] : item->contender_provider[i];
    }
    wpk_err err =
        wpk_engine_duel(holding->options.engine, item->op, item->layouts, names, (int)count,
                        &item->work.policy, (int)item->work.round_count, item->timing, &diag);
    if (has_failed(holding)) {
        return; /* it is given back */
    }
    if (err == WPK_OK && diag.text[0] != '\0') {
        wpk_log(WPK_LOG_WARN, "contender_failed", "reason=\"%.300s\"", diag.text);
    }
    item->timing_count = err == WPK_OK ? count : 0;
    if (err != WPK_OK) {
        snprintf(item->failure, sizeof item->failure, "%s",
                 diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
    }
    item->standing = ENDED;
    item->uploaded = true;
}

static void put_all(struct wpk_holding *holding)
{
    struct item *item;
    while ((item = first(holding, WAITING)) != NULL) {
        if (item->work.id.kind == WPK_WORK_FINAL) {
            if (first(holding, IN_ENGINE) == NULL && missing_of(holding, item) == NULL &&
                !has_failed(holding)) {
                hold_duel(holding, item);
                continue;
            }
            return;
        }
        put(holding, item);
        if (item->standing == WAITING) {
            return; /* the engine is full */
        }
    }
}

static void take_out(struct wpk_holding *holding)
{
    uint64_t order;
    struct wpk_record record = {0};
    while (wpk_engine_take(holding->options.engine, &order, &record) == WPK_OK) {
        for (int i = 0; i < WPK_HOLDING_MAX; i++) {
            struct item *item = &holding->items[i];
            if (item->standing == IN_ENGINE && item->order == order) {
                item->standing = ENDED;
                item->record = record;
                item->uploaded = record.artifact_path == NULL;
                if (item->uploaded) {
                    item->record.artifact_sha256[0] = '\0';
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
    /* What has just ended may have been all that a final waited for. */
    put_all(holding);
    return err;
}

/* ---- looking */

uint32_t wpk_holding_count(const struct wpk_holding *holding)
{
    return holding->count;
}

static bool is_unfinished(const struct item *item)
{
    return item->standing == WAITING || item->standing == IN_ENGINE;
}

uint32_t wpk_holding_unfinished(const struct wpk_holding *holding)
{
    uint32_t count = 0;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        count += is_unfinished(&holding->items[i]);
    }
    return count;
}

uint32_t wpk_holding_ids(const struct wpk_holding *holding, bool unfinished_only, wpk_work_id *ids)
{
    uint32_t count = 0;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct item *item = &holding->items[i];
        if (is_unfinished(item) || (!unfinished_only && item->standing != FREE)) {
            ids[count++] = item->work.id;
        }
    }
    return count;
}

/* ---- artifacts */

const char *wpk_holding_missing(const struct wpk_holding *holding)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct item *item = &holding->items[i];
        if (item->standing == WAITING && item->work.id.kind == WPK_WORK_FINAL) {
            const char *missing = missing_of(holding, item);
            if (missing != NULL) {
                return missing;
            }
        }
    }
    return NULL;
}

void wpk_holding_artifact(struct wpk_holding *holding, const char *sha256, const char *bytes,
                          size_t size, wpk_err err)
{
    char path[PATH_SIZE];
    struct wpk_diag diag = {0};
    char hash[WPK_SHA256_HEX_SIZE];
    artifact_path(holding, sha256, path);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(bytes, size, hash);
        err =
            strcmp(hash, sha256) == 0 ? wpk_fs_write(path, bytes, size, 0700, &diag) : WPK_ECORRUPT;
    }
    for (int i = 0; err != WPK_OK && i < WPK_HOLDING_MAX; i++) {
        struct item *item = &holding->items[i];
        if (item->standing == WAITING && needs(item, sha256)) {
            snprintf(item->failure, sizeof item->failure, "artifact %.12s: %s", sha256,
                     wpk_err_text(err));
            item->standing = ENDED;
            item->uploaded = true;
        }
    }
}

const struct wpk_record *wpk_holding_next_upload(const struct wpk_holding *holding)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct item *item = &holding->items[i];
        if (item->standing == ENDED && !item->uploaded) {
            return &item->record;
        }
    }
    return NULL;
}

void wpk_holding_uploaded(struct wpk_holding *holding, const char *sha256, bool stored)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct item *item = &holding->items[i];
        if (item->standing != ENDED || item->uploaded ||
            strcmp(item->record.artifact_sha256, sha256) != 0) {
            continue;
        }
        item->uploaded = true;
        if (!stored) {
            item->record.artifact_sha256[0] = '\0';
        }
    }
}

/* ---- results */

uint32_t wpk_holding_results(struct wpk_holding *holding, struct wpk_result *results, uint32_t max)
{
    uint32_t count = 0;
    WPK_ASSERT(max <= WPK_WORK_MAX);
    for (int i = 0; i < WPK_HOLDING_MAX && count < max; i++) {
        struct item *item = &holding->items[i];
        if (item->standing != ENDED || !item->uploaded) {
            continue;
        }
        struct wpk_result *result = &results[count++];
        memset(result, 0, sizeof *result);
        result->id = item->work.id;
        result->attempt = item->work.attempt;
        result->record = item->record;       /* borrowed */
        result->record.artifact_path = NULL; /* of this machine */
        memcpy(result->timing, item->timing, sizeof result->timing);
        result->timing_count = item->timing_count;
        result->failure = item->failure;
        item->standing = SENT;
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
        if (holding->items[i].standing == SENT) {
            forget(holding, &holding->items[i]);
        }
    }
}

void wpk_holding_not_acknowledged(struct wpk_holding *holding)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        if (holding->items[i].standing == SENT) {
            holding->items[i].standing = ENDED;
        }
    }
}
