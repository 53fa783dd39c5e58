/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts. They are fetched when a lease needs them, sent before the record that names them, and
 * kept while there is room. */
#include "worker/session/holding.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/log.h"
#include "worker/session/workplace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void wpk_holding_artifact_path(const struct wpk_holding *holding, const char *sha256,
                               char out[WPK_HOLDING_PATH_SIZE])
{
    snprintf(out, WPK_HOLDING_PATH_SIZE, "%s/artifacts/%s.so", holding->options.work_dir, sha256);
}

/* "" is always here. */
static bool is_here(const struct wpk_holding *holding, const char *sha256)
{
    char path[WPK_HOLDING_PATH_SIZE];
    wpk_holding_artifact_path(holding, sha256, path);
    return sha256[0] == '\0' || access(path, R_OK) == 0;
}

const char *wpk_holding_missing_of(const struct wpk_holding *holding,
                                   const struct wpk_holding_item *item)
{
    if (!is_here(holding, item->artifact_sha256)) {
        return item->artifact_sha256;
    }
    if (!is_here(holding, item->anchor_sha256)) {
        return item->anchor_sha256;
    }
    for (uint32_t i = 0; i < item->work.contender_count; i++) {
        if (!is_here(holding, item->contender_sha256[i])) {
            return item->contender_sha256[i];
        }
    }
    return NULL;
}

static bool needs(const struct wpk_holding_item *item, const char *sha256)
{
    for (uint32_t i = 0; i < item->work.contender_count; i++) {
        if (strcmp(item->contender_sha256[i], sha256) == 0) {
            return true;
        }
    }
    return strcmp(item->artifact_sha256, sha256) == 0 || strcmp(item->anchor_sha256, sha256) == 0;
}

const char *wpk_holding_missing(const struct wpk_holding *holding)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct wpk_holding_item *item = &holding->items[i];
        if (item->standing == WPK_HOLDING_WAITING) {
            const char *missing = wpk_holding_missing_of(holding, item);
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
    char path[WPK_HOLDING_PATH_SIZE];
    struct wpk_diag diag = {0};
    char hash[WPK_SHA256_HEX_SIZE];
    wpk_holding_artifact_path(holding, sha256, path);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(bytes, size, hash);
        err =
            strcmp(hash, sha256) == 0 ? wpk_fs_write(path, bytes, size, 0700, &diag) : WPK_ECORRUPT;
    }
    for (int i = 0; err != WPK_OK && i < WPK_HOLDING_MAX; i++) {
        struct wpk_holding_item *item = &holding->items[i];
        if (item->standing == WPK_HOLDING_WAITING && needs(item, sha256)) {
            /* Not the candidate's fault: wpkd has it built again, and the final held again. */
            char text[64];
            snprintf(text, sizeof text, "artifact %.12s", sha256);
            if (item->work.id.kind == WPK_WORK_FINAL) {
                char why[128];
                snprintf(why, sizeof why, "%s: %s", text, wpk_err_text(err));
                wpk_holding_fail_final(item, why);
            } else {
                wpk_holding_fail(item, WPK_OUTCOME_ABANDONED, text, err);
            }
        }
    }
}

static bool is_to_send(const struct wpk_holding_item *item)
{
    return item->standing == WPK_HOLDING_ENDED && !item->uploaded;
}

const struct wpk_record *wpk_holding_next_upload(const struct wpk_holding *holding,
                                                 wpk_work_id *made_for)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct wpk_holding_item *item = &holding->items[i];
        if (is_to_send(item)) {
            *made_for = item->work.id;
            return &item->record;
        }
    }
    return NULL;
}

void wpk_holding_uploaded(struct wpk_holding *holding, const char *sha256)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct wpk_holding_item *item = &holding->items[i];
        if (is_to_send(item) && strcmp(item->record.artifact_sha256, sha256) == 0) {
            item->uploaded = true;
        }
    }
}

static struct wpk_holding_item *find_to_send(struct wpk_holding *holding, wpk_work_id made_for)
{
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        struct wpk_holding_item *item = &holding->items[i];
        if (is_to_send(item) && wpk_work_id_equal(item->work.id, made_for)) {
            return item;
        }
    }
    return NULL;
}

void wpk_holding_not_sent(struct wpk_holding *holding, wpk_work_id made_for, wpk_err err)
{
    struct wpk_holding_item *item = find_to_send(holding, made_for);
    if (item != NULL) {
        char text[64];
        char path[WPK_HOLDING_PATH_SIZE];
        snprintf(text, sizeof text, "artifact %.12s", item->record.artifact_sha256);
        wpk_holding_artifact_path(holding, item->record.artifact_sha256, path);
        wpk_log(WPK_LOG_WARN, "artifact_not_sent", "work=%s artifact=%s reason=\"%s\"", item->name,
                item->record.artifact_sha256, wpk_err_text(err));
        unlink(path); /* it is built again */
        wpk_record_fini(&item->record);
        wpk_holding_fail(item, WPK_OUTCOME_ABANDONED, text, err);
    }
}

void wpk_holding_refused(struct wpk_holding *holding, wpk_work_id made_for, wpk_err err,
                         const char *why)
{
    struct wpk_holding_item *item = find_to_send(holding, made_for);
    if (item != NULL) {
        wpk_log(WPK_LOG_WARN, "artifact_refused", "work=%s artifact=%s error=%s reason=\"%.300s\"",
                item->name, item->record.artifact_sha256, wpk_err_name(err), why);
        wpk_holding_forget(holding, item);
    }
}

static bool is_needed(const void *user, const char *name)
{
    const struct wpk_holding *holding = user;
    char sha256[WPK_ID_MAX];
    snprintf(sha256, sizeof sha256, "%.*s", (int)strcspn(name, "."), name);
    for (int i = 0; i < WPK_HOLDING_MAX; i++) {
        const struct wpk_holding_item *item = &holding->items[i];
        bool to_send = is_to_send(item) && strcmp(item->record.artifact_sha256, sha256) == 0;
        if (to_send || (wpk_holding_is_unfinished(item) && needs(item, sha256))) {
            return true;
        }
    }
    return false;
}

/* The builder's part of every kernel, among what it has prepared. */
static bool is_part(const void *user WPK_UNUSED, const char *name)
{
    return strcmp(name, "stub.o") == 0;
}

void wpk_holding_trim(struct wpk_holding *holding)
{
    static const struct wpk_cache_limits artifacts = {.files_max = 512, .bytes_max = 64 << 20};
    static const struct wpk_cache_limits prepared = {.files_max = 2048, .bytes_max = 256 << 20};
    static const struct wpk_cache_limits answers = {.files_max = 64, .bytes_max = 1 << 30};
    char path[WPK_HOLDING_PATH_SIZE];
    snprintf(path, sizeof path, "%s/artifacts", holding->options.work_dir);
    wpk_cache_trim(path, ".so", &artifacts, is_needed, holding);
    snprintf(path, sizeof path, "%s/prepare-cache", holding->options.work_dir);
    wpk_cache_trim(path, ".o", &prepared, is_part, NULL);
    snprintf(path, sizeof path, "%s/answers", holding->options.work_dir);
    wpk_cache_trim(path, ".answers", &answers, NULL, NULL);
}
