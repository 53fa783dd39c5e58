/* SPDX-License-Identifier: Apache-2.0 */
/* Check that everything is there, and as it was written. */
#include "common/crypto.h"
#include "coordinator/db/db_command.h"
#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"
#include "coordinator/store/sign.h"

#include <stdio.h>
#include <string.h>

static void check_pages(struct wpk_store *store, struct wpk_db_report *report)
{
    struct wpk_rows *rows = wpk_store_query(store, "PRAGMA integrity_check(100)", "");
    while (wpk_rows_next(rows)) {
        const char *verdict = wpk_rows_text(rows, 0);
        if (strcmp(verdict, "ok") != 0) {
            wpk_db_found(report, "database: %s", verdict);
        }
    }
}

static void check_references(struct wpk_store *store, struct wpk_db_report *report)
{
    struct wpk_rows *rows = wpk_store_query(store, "PRAGMA foreign_key_check", "");
    while (wpk_rows_next(rows)) {
        wpk_db_found(report, "reference: row %lld of %s names a row of %s that is not there",
                     (long long)wpk_rows_int(rows, 1), wpk_rows_text(rows, 0),
                     wpk_rows_text(rows, 2));
    }
}

/* A wpkd at work may have dropped it since its row was read. */
static void check_missing(struct wpk_store *store, const char *hashes, struct wpk_db_report *report)
{
    for (const char *at = hashes; *at != '\0'; at += 2 * WPK_SHA256_SIZE) {
        char sha256[WPK_SHA256_HEX_SIZE];
        snprintf(sha256, sizeof sha256, "%s", at);
        if (wpk_history_has_artifact(store, sha256)) {
            wpk_db_found(report, "artifact %s: the file is missing", sha256);
        }
    }
}

/* Those that have a row; a file without one is harmless. */
static void check_artifacts(const char *data_dir, struct wpk_store *store,
                            struct wpk_db_report *report)
{
    int64_t count = 0, bytes = 0;
    struct wpk_buf missing = {0};
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT sha256, size FROM artifact ORDER BY sha256", "");
    while (wpk_rows_next(rows)) {
        const char *sha256 = wpk_rows_text(rows, 0);
        struct wpk_buf file = {0};
        wpk_err err = wpk_artifact_get(data_dir, sha256, &file, NULL);
        count++;
        bytes += (int64_t)file.size;
        if (err == WPK_ENOENT && wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE)) {
            wpk_buf_append_text(&missing, sha256);
        } else if (err != WPK_OK) {
            wpk_db_found(report, "artifact %.64s: %s", sha256,
                         err == WPK_ECORRUPT ? "the file is damaged" : wpk_err_text(err));
        } else if ((int64_t)file.size != wpk_rows_int(rows, 1)) {
            wpk_db_found(report, "artifact %s: its row has another size", sha256);
        }
        wpk_buf_fini(&file);
    }
    check_missing(store, wpk_buf_text(&missing), report);
    wpk_buf_fini(&missing);
    wpk_db_say(report, "artifacts", count);
    wpk_db_say(report, "artifact_bytes", bytes);
}

static bool is_signed(const struct wpk_sign *sign, const char *manifest, const char *hex)
{
    uint8_t key[WPK_SIGN_PUBLIC_SIZE];
    uint8_t signature[WPK_SIGNATURE_SIZE];
    return wpk_crypto_unhex(wpk_sign_public_key(sign), sizeof key, key) &&
           wpk_crypto_unhex(hex, sizeof signature, signature) &&
           wpk_crypto_verify(key, manifest, strlen(manifest), signature);
}

/* With the key that is there: who restores a history without it has made a new one. */
static void check_signatures(const char *data_dir, struct wpk_store *store,
                             struct wpk_db_report *report)
{
    struct wpk_sign *sign = NULL;
    struct wpk_diag diag = {0};
    int64_t count = 0;
    wpk_err err = wpk_sign_open(data_dir, false, &sign, &diag);
    if (err != WPK_OK && err != WPK_ENOENT) {
        wpk_db_found(report, "signing key: %s", diag.text);
    }
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT id, manifest, signature FROM kernel WHERE signature <> '' ORDER BY id", "");
    while (sign != NULL && wpk_rows_next(rows)) {
        count++;
        if (!is_signed(sign, wpk_rows_text(rows, 1), wpk_rows_text(rows, 2))) {
            wpk_db_found(report, "kernel k%lld: its manifest is not what was signed",
                         (long long)wpk_rows_int(rows, 0));
        }
    }
    wpk_rows_close(rows);
    wpk_sign_close(sign);
    wpk_db_say(report, "signatures", count);
}

static void count_rows(struct wpk_store *store, struct wpk_db_report *report)
{
    static const char *const queries[][2] = {
        {"problems", "SELECT count(*) FROM problem"},
        {"trials", "SELECT count(*) FROM trial"},
        {"kernels", "SELECT count(*) FROM kernel"},
        {"jobs", "SELECT count(*) FROM job"},
    };
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        int64_t count;
        if (wpk_rows_take(wpk_store_query(store, queries[i][1], ""), "i", &count)) {
            wpk_db_say(report, queries[i][0], count);
        }
    }
}

wpk_err wpk_db_check(const struct wpk_db_options *options, struct wpk_db_report *report,
                     struct wpk_diag *diag)
{
    struct wpk_store *store = NULL;
    wpk_err err = wpk_store_open_reader(options->data_dir, wpk_clock_system(), &store, diag);
    if (err != WPK_OK) {
        return err;
    }
    check_pages(store, report);
    check_references(store, report);
    count_rows(store, report);
    check_artifacts(options->data_dir, store, report);
    check_signatures(options->data_dir, store, report);
    err = wpk_store_take_status(store, diag);
    wpk_store_close(store);
    if (err == WPK_OK && report->found_count > 0) {
        err = wpk_fail(
            diag, WPK_ECORRUPT, "%s: %lld finding%s; wpkctl db restore puts a backup in its place",
            options->data_dir, (long long)report->found_count, report->found_count == 1 ? "" : "s");
    }
    return err;
}
