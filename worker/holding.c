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
    DUELLING,
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
    struct wpk_device target;         /* BUILD */
    char artifact_sha256[WPK_ID_MAX]; /* RUN */
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

static void copy_work(struct item *item, const struct wpk_work *work,
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
    for (uint32_t i = 0; i < work->contender_count; i++) {
        snprintf(item->contender_provider[i], WPK_PROVIDER_NAME_MAX, "%s",
                 work->contenders[i].provider);
        snprintf(item->contender_sha256[i], WPK_ID_MAX, "%s", work->contenders[i].artifact_sha256);
    }
}

static void take_in(struct wpk_holding *holding, const struct wpk_work *work,
                    const struct wpk_message *message)
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
    copy_work(item, work, message);
    holding->count++;
}

void wpk_holding_take_in(struct wpk_holding *holding, const struct wpk_message *work)
{
    for (uint32_t i = 0; i < work->work_count; i++) {
        struct item *item = find(holding, work->work[i].id);
        if (item == NULL) {
            take_in(holding, &work->work[i], work);
        } else {
            item->work.lease = work->work[i].lease; /* given again: its number is another */
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

static void fail_item(struct item *item, enum wpk_outcome outcome, const char *text, wpk_err err)
{
    item->standing = ENDED;
    item->uploaded = true;
    item->record.outcome = outcome;
    snprintf(item->record.log, sizeof item->record.log, "%s: %s", text, wpk_err_text(err));
}

static void artifact_path(const struct wpk_holding *holding, const char *sha256,
                          char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%s/artifacts/%s.so", holding->options.work_dir, sha256);
}

static void put(struct wpk_holding *holding, struct item *item)
{
    char path[PATH_SIZE];
    artifact_path(holding, item->artifact_sha256, path);
    struct wpk_trial trial = {
        .id = item->order,
        .op = item->op,
        .layouts = item->layouts,
        .provider = item->provider,
        .candidate = item->candidate,
        .policy = item->work.policy,
        .incumbent_ns = item->work.incumbent_ns,
        .keep_artifact = item->work.keep_artifact,
        .build_only = item->work.stage == WPK_STAGE_BUILD,
        .target = item->work.stage == WPK_STAGE_BUILD ? &item->target : NULL,
        .artifact = item->artifact_sha256[0] != '\0' ? path : NULL,
        .build_ns = item->work.build_ns,
    };
    wpk_err err = wpk_engine_put(holding->options.engine, &trial);
    if (err == WPK_OK) {
        item->standing = IN_ENGINE;
    } else if (err != WPK_ENOSPC) {
        fail_item(item, WPK_OUTCOME_UNSUPPORTED, "the engine does not take it", err);
    }
}

static const char *missing_of(const struct wpk_holding *holding, const struct item *item)
{
    char path[PATH_SIZE];
    artifact_path(holding, item->artifact_sha256, path);
    if (item->artifact_sha256[0] != '\0' && access(path, R_OK) != 0) {
        return item->artifact_sha256;
    }
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
    return strcmp(item->artifact_sha256, sha256) == 0;
}

static bool has_failed(const struct wpk_holding *holding)
{
    return wpk_engine_failure(holding->options.engine)->text[0] != '\0';
}

static void fail_final(struct item *item, const char *why)
{
    snprintf(item->failure, sizeof item->failure, "%s", why);
    item->timing_count = 0;
    item->standing = ENDED;
    item->uploaded = true;
}

static void begin_duel(struct wpk_holding *holding, struct item *item)
{
    char paths[WPK_CONTENDERS_MAX][PATH_SIZE];
    const char *names[WPK_CONTENDERS_MAX];
    struct wpk_diag diag = {0};
    uint32_t count = item->work.contender_count;
    for (uint32_t i = 0; i < count; i++) {
        artifact_path(holding, item->contender_sha256[i], paths[i]);
        names[i] = item->contender_sha256[i][0] != '\0' ? paths[i] : item->contender_provider[i];
    }
    const struct wpk_duel duel = {.op = item->op,
                                  .layouts = item->layouts,
                                  .paths = names,
                                  .count = (int)count,
                                  .policy = &item->work.policy,
                                  .round_count = (int)item->work.round_count};
    wpk_err err = wpk_engine_duel_begin(holding->options.engine, &duel, &diag);
    if (err == WPK_OK) {
        item->standing = DUELLING;
    } else if (err != WPK_EBUSY && !has_failed(holding)) {
        fail_final(item, diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
    }
}

static void end_duel(struct wpk_holding *holding)
{
    struct wpk_diag diag = {0};
    struct item *item = first(holding, DUELLING);
    if (item == NULL) {
        return;
    }
    wpk_err err = wpk_engine_duel_end(holding->options.engine, item->timing, &diag);
    if (err == WPK_EBUSY || has_failed(holding)) {
        return; /* it goes on; or it is given back */
    }
    if (err != WPK_OK) {
        fail_final(item, diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        return;
    }
    if (diag.text[0] != '\0') {
        wpk_log(WPK_LOG_WARN, "contender_failed", "reason=\"%.300s\"", diag.text);
    }
    item->timing_count = item->work.contender_count;
    item->standing = ENDED;
    item->uploaded = true;
}

/* The oldest that waits, of those that came after `order`. */
static struct item *next_waiting(struct wpk_holding *holding, uint64_t order)
{
    struct item *next = NULL;
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct item *item = &holding->items[i];
        if (item->standing == WAITING && item->order > order &&
            (next == NULL || item->order < next->order)) {
            next = item;
        }
    }
    return next;
}

/* A final is timed alone: what came before it ends first, and what came after it waits. */
static void put_all(struct wpk_holding *holding)
{
    struct item *item = first(holding, DUELLING) != NULL ? NULL : next_waiting(holding, 0);
    while (item != NULL) {
        uint64_t order = item->order;
        bool here = missing_of(holding, item) == NULL;
        if (item->work.id.kind == WPK_WORK_FINAL) {
            if (here && first(holding, IN_ENGINE) == NULL && !has_failed(holding)) {
                begin_duel(holding, item);
            }
            if (item->standing != ENDED) {
                return;
            }
        } else if (here) {
            put(holding, item);
            if (item->standing == WAITING) {
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
            struct item *item = &holding->items[i];
            if (item->standing == IN_ENGINE && item->order == order) {
                item->standing = ENDED;
                item->record = record;
                item->uploaded = record.artifact_path == NULL;
                if (item->uploaded) {
                    /* Who built it has it; or nobody. */
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
    return item->standing == WAITING || item->standing == IN_ENGINE || item->standing == DUELLING;
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

uint64_t wpk_holding_running(const struct wpk_holding *holding)
{
    uint64_t order = wpk_engine_running(holding->options.engine);
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct item *item = &holding->items[i];
        if (item->standing == DUELLING || (item->standing == IN_ENGINE && item->order == order)) {
            return item->work.lease;
        }
    }
    return 0;
}

/* ---- artifacts */

const char *wpk_holding_missing(const struct wpk_holding *holding)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct item *item = &holding->items[i];
        if (item->standing == WAITING) {
            const char *missing = missing_of(holding, item);
            if (missing != NULL) {
                return missing;
            }
        }
    }
    return NULL;
}

/* Not the candidate's fault: wpkd has it built again, or leaves the final out. */
static void fail_for_artifact(struct item *item, const char *sha256, wpk_err err)
{
    char text[64];
    snprintf(text, sizeof text, "artifact %.12s", sha256);
    if (item->work.id.kind == WPK_WORK_FINAL) {
        char why[128];
        snprintf(why, sizeof why, "%s: %s", text, wpk_err_text(err));
        fail_final(item, why);
    } else {
        fail_item(item, WPK_OUTCOME_ABANDONED, text, err);
    }
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
            fail_for_artifact(item, sha256, err);
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
