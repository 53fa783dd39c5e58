/* SPDX-License-Identifier: Apache-2.0 */
/* An import is one transaction: a file that is not what an export writes leaves nothing behind but
 * artifacts without rows. SQLite merges; what SQL cannot check is checked here first.
 *
 *     file or stream ──▶ copy ── seal, version, tables, pages ──▶ `given` ── rows ──▶ history
 *
 * A document of hints, which begins with '{', is read instead of an export. */
#include "common/clock.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "common/json.h"
#include "coordinator/db/db_command.h"
#include "coordinator/db/db_file.h"
#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"
#include "coordinator/store/sign.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/notation.h"
#include "schema/kernel_manifest.h"
#include "schema/message.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DOCUMENT_SIZE_MAX ((size_t)4 << 20)
#define HINT_TEXT_MAX ((size_t)64 << 10) /* bytes of a fingerprint, layouts or a candidate */

/* db_merge.sql, embedded by the build. */
extern const unsigned char wpk_db_merge_sql[];
extern const size_t wpk_db_merge_sql_size;

struct import {
    struct wpk_store *store; /* in a batch; the export is attached as `given` */
    const char *data_dir;
    const struct wpk_sign *sign; /* the local key, for new signatures */
    const char *file;            /* as the user named it */
};

static int64_t count(struct import *i, const char *query)
{
    int64_t value = 0;
    wpk_rows_take(wpk_store_query(i->store, query, ""), "i", &value);
    return value;
}

/* A row of the file is at fault: the batch fails, and the message names it. */
static void refuse(struct import *i, const char *row, const char *column, const char *why)
{
    struct wpk_diag diag = {0};
    snprintf(diag.file, sizeof diag.file, "%.*s", (int)sizeof diag.file - 1, i->file);
    wpk_diag_set(&diag, "%s: %s: %s; export it again", row, column, why);
    wpk_store_fail(i->store, WPK_EINVAL, &diag);
}

/* ---- the rows of an export */

static void take_artifacts(struct import *i)
{
    struct wpk_rows *rows =
        wpk_store_query(i->store, "SELECT sha256, bytes FROM given.artifact_bytes", "");
    while (wpk_rows_next(rows)) {
        struct wpk_diag diag = {0};
        size_t size = 0;
        const char *sha256 = wpk_rows_text(rows, 0);
        const void *bytes = wpk_rows_bytes(rows, 1, &size);
        if (!wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE) || size == 0 ||
            size > WPK_ARTIFACT_SIZE_MAX) {
            refuse(i, "artifact", "bytes", "no such artifact can be");
            break;
        }
        wpk_err err = wpk_artifact_put(i->data_dir, sha256, bytes, size, &diag);
        if (err == WPK_ECORRUPT) {
            refuse(i, "artifact", "sha256", diag.text);
        } else if (err != WPK_OK) {
            wpk_store_fail(i->store, err, &diag);
        } else {
            wpk_history_put_artifact(i->store, sha256, size);
        }
    }
    wpk_rows_close(rows);
}

/* The operator says itself what it is: a fingerprint that is not its own would serve one
 * operator's kernel for another. */
static void check_problems(struct import *i)
{
    struct wpk_rows *rows =
        wpk_store_query(i->store,
                        "SELECT op, fingerprint, family, extents, constants FROM"
                        " given.problem",
                        "");
    while (wpk_rows_next(rows)) {
        struct wpk_program program = {0};
        struct wpk_fingerprint own = {0};
        struct wpk_diag diag = {0};
        wpk_err err = wpk_program_parse(wpk_rows_text(rows, 0), &program, &diag);
        if (err == WPK_OK) {
            err = wpk_fingerprint(&program, &own);
            wpk_program_fini(&program);
        }
        if (err != WPK_OK) {
            refuse(i, "problem", "op", diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        } else if (strcmp(own.exact, wpk_rows_text(rows, 1)) != 0 ||
                   strcmp(own.family, wpk_rows_text(rows, 2)) != 0 ||
                   strcmp(own.extents, wpk_rows_text(rows, 3)) != 0 ||
                   strcmp(own.constants, wpk_rows_text(rows, 4)) != 0) {
            refuse(i, "problem", "fingerprint", "it is not the operator's");
        }
    }
}

static void check_trials(struct import *i)
{
    struct wpk_rows *rows = wpk_store_query(
        i->store, "SELECT provider, candidate, candidate_hash, outcome FROM given.trial", "");
    while (wpk_rows_next(rows)) {
        uint8_t hash[WPK_STORE_HASH_SIZE];
        enum wpk_outcome outcome;
        size_t size = 0;
        const void *given = wpk_rows_bytes(rows, 2, &size);
        wpk_store_hash(wpk_rows_text(rows, 0), wpk_rows_text(rows, 1), hash);
        if (size != sizeof hash || memcmp(given, hash, sizeof hash) != 0) {
            refuse(i, "trial", "candidate_hash", "it is not the candidate's");
        } else if (wpk_outcome_parse(wpk_rows_text(rows, 3), &outcome) != WPK_OK) {
            refuse(i, "trial", "outcome", "no candidate ends so");
        }
    }
}

static bool is_kind(const char *name)
{
    for (int i = 0; i < WPK_WORK_COUNT; i++) {
        if (strcmp(name, wpk_work_kind_name((enum wpk_work_kind)i)) == 0) {
            return true;
        }
    }
    return false;
}

static void check_measurements(struct import *i)
{
    struct wpk_rows *rows =
        wpk_store_query(i->store, "SELECT DISTINCT kind FROM given.measurement", "");
    while (wpk_rows_next(rows)) {
        if (!is_kind(wpk_rows_text(rows, 0))) {
            refuse(i, "measurement", "kind", "no work is of that kind");
        }
    }
}

static void check_manifest(struct import *i, const char *manifest, const char *artifact,
                           const char *fingerprint)
{
    struct wpk_kernel_manifest kernel;
    struct wpk_diag diag = {0};
    if (wpk_kernel_manifest_decode(manifest, strlen(manifest), &kernel, &diag) != WPK_OK) {
        refuse(i, "kernel", "manifest", diag.text);
    } else if (strcmp(kernel.fingerprint, fingerprint) != 0 ||
               (artifact[0] != '\0' && strcmp(kernel.artifact, artifact) != 0)) {
        refuse(i, "kernel", "manifest", "it is another kernel's");
    }
}

/* It stands in answers as it is. */
static void check_document(struct import *i, const char *text)
{
    struct wpk_json_reader *document = NULL;
    if (wpk_json_open(text, strlen(text), DOCUMENT_SIZE_MAX, &document, NULL) != WPK_OK) {
        refuse(i, "kernel", "document", "it is no JSON");
    }
    wpk_json_close(document);
}

/* As the column has it, in the one spelling of the class. */
static void check_class(struct import *i, const char *text)
{
    struct wpk_accuracy accuracy;
    char name[WPK_ACCURACY_TEXT_MAX] = "";
    if (wpk_accuracy_parse(text, &accuracy, NULL) == WPK_OK) {
        wpk_accuracy_name(accuracy, name);
    }
    if (name[0] == '\0' || strcmp(name, text) != 0) {
        refuse(i, "kernel", "accuracy", "it is no class of accuracy");
    }
}

static void sign_kernels(struct import *i)
{
    struct wpk_rows *rows = wpk_store_query(
        i->store,
        "SELECT k.id, k.manifest, k.artifact_sha256, p.fingerprint, k.document,"
        " k.accuracy FROM given.kernel k JOIN given.problem p ON p.id = k.problem_id",
        "");
    while (wpk_rows_next(rows)) {
        char signature[WPK_SIGNATURE_HEX_SIZE] = "";
        const char *manifest = wpk_rows_text(rows, 1);
        if (manifest[0] != '\0') {
            check_manifest(i, manifest, wpk_rows_text(rows, 2), wpk_rows_text(rows, 3));
            wpk_sign_text(i->sign, manifest, strlen(manifest), signature);
        }
        check_document(i, wpk_rows_text(rows, 4));
        check_class(i, wpk_rows_text(rows, 5));
        wpk_store_run(i->store, "INSERT INTO signed VALUES (?, ?)", "it", wpk_rows_int(rows, 0),
                      signature);
    }
}

static void execute(struct import *i, const char *sql)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_store_status(i->store);
    if (err == WPK_OK) {
        err = wpk_store_execute(i->store, sql, &diag);
        if (err != WPK_OK) {
            wpk_store_fail(i->store, err, &diag);
        }
    }
}

static void merge(struct import *i)
{
    struct wpk_buf sql = {0};
    execute(i, "CREATE TEMP TABLE here (epoch INTEGER, now INTEGER);"
               "CREATE TEMP TABLE signed (kernel INTEGER PRIMARY KEY, signature TEXT)");
    wpk_store_run(i->store, "INSERT INTO here VALUES (?, ?)", "ii", wpk_store_epoch(i->store),
                  (int64_t)wpk_store_wall_ns(i->store));
    check_problems(i);
    check_trials(i);
    check_measurements(i);
    sign_kernels(i);
    take_artifacts(i);
    wpk_buf_append(&sql, wpk_db_merge_sql, wpk_db_merge_sql_size);
    execute(i, wpk_buf_text(&sql));
    wpk_buf_fini(&sql);
}

/* ---- the file */

/* The tables must be ours to the letter: a view, or a trigger, would run as the file wants. */
static wpk_err check_tables(struct wpk_store *store, struct wpk_diag *diag)
{
    int64_t version = 0, strange = 0;
    wpk_err err = wpk_store_read_int(store, "PRAGMA given.user_version", &version, diag);
    if (err == WPK_OK && version != WPK_STORE_VERSION) {
        return wpk_fail(
            diag, WPK_EMISMATCH,
            "the file has version %lld, this wpkd reads %d only; export it with the same "
            "wpkctl",
            (long long)version, WPK_STORE_VERSION);
    }
    if (err == WPK_OK) {
        err = wpk_store_read_int(
            store,
            "SELECT count(*) FROM given.sqlite_schema g WHERE g.sql IS NOT '" WPK_DB_ARTIFACT_TABLE
            "' AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema m WHERE m.name = g.name"
            " AND m.type = g.type AND m.sql IS g.sql)",
            &strange, diag);
    }
    if (err == WPK_OK && strange == 0) {
        err = wpk_store_check(store, diag);
    }
    if (err == WPK_ECORRUPT || strange > 0) {
        *diag = (struct wpk_diag){0};
        return wpk_fail(diag, WPK_ECORRUPT, "the file is damaged; export it again");
    }
    return err;
}

static void get_hint(struct import *i, struct wpk_json_reader *r)
{
    const char *fingerprint = wpk_json_get_text(r, "fingerprint", HINT_TEXT_MAX);
    const char *layouts = wpk_json_get_text(r, "layouts", HINT_TEXT_MAX);
    const char *candidate = wpk_json_get_text(r, "candidate", HINT_TEXT_MAX);
    double time_ns = wpk_json_get_real(r, "time_ns", 1e-9, 1e300);
    if (wpk_json_status(r) == WPK_OK) {
        wpk_store_run(i->store, "INSERT OR IGNORE INTO hint VALUES (?, ?, ?, ?, ?, ?)", "tttrii",
                      fingerprint, layouts, candidate, time_ns,
                      (int64_t)wpk_store_wall_ns(i->store), wpk_store_epoch(i->store));
    }
}

/* {"hints": [{"fingerprint": ..., "layouts": ..., "candidate": ..., "time_ns": ...}, ...]} */
static wpk_err take_hints(struct import *i, const struct wpk_buf *text, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(wpk_buf_text(text), text->size, text->size_max, &r, diag);
    if (err != WPK_OK || !wpk_json_has(r, "hints")) {
        wpk_json_close(r);
        *diag = (struct wpk_diag){0};
        return wpk_fail(diag, WPK_EINVAL,
                        "this is no export of Woodpecker, or one of an older wpkd; "
                        "wpkctl export FILE writes one");
    }
    wpk_json_enter_array(r, "hints");
    while (wpk_json_next(r)) {
        get_hint(i, r);
    }
    wpk_json_leave(r);
    err = wpk_json_status(r);
    wpk_json_close(r);
    return err;
}

/* Into the batch; a failure that is not the store's own is returned. */
static wpk_err take_file(struct import *i, const char *path, bool hints, struct wpk_diag *diag)
{
    struct wpk_buf text = {.size_max = WPK_HINTS_SIZE_MAX};
    wpk_err err = WPK_OK;
    if (hints) {
        err = wpk_fs_read(path, WPK_HINTS_SIZE_MAX, &text, diag);
        err = err == WPK_OK ? take_hints(i, &text, diag) : err;
    } else {
        merge(i);
    }
    wpk_buf_fini(&text);
    return err;
}

/* An import reports by how much a table grows, or the rows of a table of db_merge.sql. */
static const struct {
    const char *key, *query;
    bool grows;
} reported[] = {
    {"new_problems", "SELECT count(*) FROM problem", true},
    {"new_trials", "SELECT count(*) FROM new_trial", false},
    {"new_kernels", "SELECT count(*) FROM kernel", true},
    {"newly_served", "SELECT count(*) FROM new_kernel WHERE served = 1", false},
    {"new_hints", "SELECT count(*) FROM hint", true},
    {"new_artifacts", "SELECT count(*) FROM artifact", true},
};
enum { REPORTED = sizeof reported / sizeof reported[0] };

static wpk_err take_batch(struct import *i, const char *path, bool hints,
                          struct wpk_db_report *report, struct wpk_diag *diag)
{
    struct wpk_diag committed = {0};
    int64_t before[REPORTED] = {0};
    wpk_store_begin(i->store);
    for (int n = 0; n < REPORTED; n++) {
        before[n] = reported[n].grows ? count(i, reported[n].query) : 0;
    }
    wpk_err err = take_file(i, path, hints, diag);
    for (int n = 0; n < REPORTED; n++) {
        bool counted = reported[n].grows || !hints;
        wpk_db_say(report, reported[n].key, counted ? count(i, reported[n].query) - before[n] : 0);
    }
    if (err != WPK_OK && wpk_store_status(i->store) == WPK_OK) {
        wpk_store_fail(i->store, err, diag);
    }
    err = wpk_store_commit(i->store, &committed);
    if (err != WPK_OK) {
        *diag = committed;
    }
    return err;
}

static wpk_err import_locked(struct import *i, const char *path, struct wpk_db_report *report,
                             struct wpk_diag *diag)
{
    struct wpk_sign *sign = NULL;
    char first = '\0';
    FILE *file = fopen(path, "rbe");
    bool hints = file != NULL && fread(&first, 1, 1, file) == 1 && first == '{';
    if (file != NULL) {
        (void)fclose(file);
    }
    wpk_err err = hints ? WPK_OK : wpk_db_unseal(path, diag);
    err = err == WPK_OK ? wpk_sign_open(i->data_dir, true, &sign, diag) : err;
    err = err == WPK_OK ? wpk_store_open(i->data_dir, wpk_clock_system(), &i->store, diag) : err;
    if (err == WPK_OK && !hints) {
        err = wpk_store_attach_given(i->store, path, diag);
        err = err == WPK_OK ? check_tables(i->store, diag) : err;
    }
    if (err == WPK_OK) {
        i->sign = sign;
        err = take_batch(i, path, hints, report, diag);
    }
    wpk_store_close(i->store);
    wpk_sign_close(sign);
    return err;
}

wpk_err wpk_db_import(const struct wpk_db_options *options, struct wpk_db_report *report,
                      struct wpk_diag *diag)
{
    struct import i = {.data_dir = options->data_dir, .file = options->file};
    char copy[WPK_DB_TEMPORARY_SIZE] = "";
    int lock = -1;
    wpk_err err = wpk_lock_take(options->data_dir, &lock, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = wpk_db_make_temporary(copy, diag);
    if (err == WPK_OK) {
        err = wpk_db_copy_stream(options->file, copy, diag);
        err = err == WPK_OK ? import_locked(&i, copy, report, diag) : err;
        (void)unlink(copy);
    }
    (void)close(lock);
    if (err != WPK_OK && err != WPK_EACCES && diag->file[0] == '\0') {
        snprintf(diag->file, sizeof diag->file, "%.*s", (int)sizeof diag->file - 1, options->file);
    }
    return err == WPK_ECORRUPT ? WPK_EINVAL : err;
}
