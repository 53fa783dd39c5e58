/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/db/db_merge.h"

#include "coordinator/db/db_file.h"
#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"
#include "ir/canonical/fingerprint.h"
#include "ir/notation/notation.h"
#include "schema/kernel_manifest.h"

#include <stdio.h>
#include <string.h>

#define REAL_MAX 1e300

/* db_merge.sql, embedded by the build. */
extern const unsigned char wpk_db_merge_sql[];
extern const size_t wpk_db_merge_sql_size;

/* ---- what becomes of a list of db_file.h: a struct `row`, what fills it, and a row of a table */

static int64_t get_u64(struct wpk_json_reader *r, const char *name)
{
    uint64_t value = wpk_json_get_u64(r, name);
    if (value > INT64_MAX) {
        wpk_json_fail(r, name, WPK_ERANGE, "too large");
    }
    return (int64_t)value;
}

#define TYPE_t const char *
#define TYPE_u int64_t
#define TYPE_i int64_t
#define TYPE_r double
#define READ_t(name, limit) wpk_json_get_text(r, name, limit)
#define READ_u(name, limit) get_u64(r, name)
#define READ_i(name, limit) wpk_json_get_int(r, name, 0, limit)
#define READ_r(name, limit) wpk_json_get_real(r, name, limit, REAL_MAX)
#define LETTER_t "t"
#define LETTER_u "i"
#define LETTER_i "i"
#define LETTER_r "r"
#define FIELD(name, type, limit) TYPE_##type name;
#define READ(name, type, limit) row.name = READ_##type(#name, limit);
#define PLACE(name, type, limit) ", ?"
#define LETTER(name, type, limit) LETTER_##type
#define VALUE(name, type, limit) , row.name
#define INSERT(into, columns, places, list)                                                        \
    "INSERT " into " (" columns list(WPK_DB_COLUMN) ") VALUES (" places list(PLACE) ")"

/* ---- artifacts */

static int64_t first_int(struct wpk_rows *rows)
{
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : 0;
    wpk_rows_close(rows);
    return value;
}

void wpk_db_merge_artifact(struct wpk_db_merge *m, const char *sha256, const struct wpk_buf *bytes,
                           struct wpk_json_reader *r)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_artifact_put(m->data_dir, sha256, bytes->data, bytes->size, &diag);
    if (err == WPK_ECORRUPT) {
        wpk_json_fail(r, "sha256", WPK_EINVAL, "%s", diag.text);
    } else if (err != WPK_OK) {
        wpk_store_fail(m->store, err, &diag);
    } else if (first_int(wpk_store_query(m->store, "SELECT 1 FROM artifact WHERE sha256 = ?", "t",
                                         sha256)) == 0) {
        wpk_history_put_artifact(m->store, sha256, bytes->size);
        m->artifacts++;
    }
}

/* ---- problems */

/* The operator says itself what it is: a fingerprint that is not its own would serve one
 * operator's kernel for another. */
static void identify(struct wpk_json_reader *r, const char *op, const char *claimed,
                     struct wpk_fingerprint *out)
{
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    wpk_err err = wpk_program_parse(op, &program, &diag);
    if (err == WPK_OK) {
        err = wpk_fingerprint(&program, out);
        wpk_program_fini(&program);
    }
    if (err != WPK_OK) {
        wpk_json_fail(r, "op", err == WPK_ENOMEM ? err : WPK_EINVAL, "%s", diag.text);
    } else if (strcmp(out->exact, claimed) != 0) {
        wpk_json_fail(r, "fingerprint", WPK_EINVAL, "it is not the operator's");
    }
}

void wpk_db_merge_problem(struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    struct {
        WPK_DB_PROBLEM_LIST(FIELD)
    } row;
    struct wpk_fingerprint identity = {0};
    WPK_DB_PROBLEM_LIST(READ)
    identify(r, row.op, row.fingerprint, &identity);
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    snprintf(m->fingerprint, sizeof m->fingerprint, "%s", row.fingerprint);
    m->problems += wpk_store_run(
        m->store,
        INSERT("OR IGNORE INTO problem", "family, extents, epoch", "?, ?, ?", WPK_DB_PROBLEM_LIST),
        "tti" WPK_DB_PROBLEM_LIST(LETTER), identity.family, identity.extents,
        wpk_store_epoch(m->store) WPK_DB_PROBLEM_LIST(VALUE));
    m->problem = first_int(wpk_store_query(
        m->store,
        "SELECT id FROM problem WHERE fingerprint = ? AND layouts = ? AND device_class = ?"
        " AND environment = ? AND policy = ?",
        "ttttt", row.fingerprint, row.layouts, row.device_class, row.environment, row.policy));
}

static bool in_problem(const struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    if (m->problem == 0) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "it belongs to no problem");
    }
    return wpk_json_status(r) == WPK_OK;
}

/* ---- trials */

static bool is_kind(const char *name)
{
    for (int i = 0; i < WPK_WORK_COUNT; i++) {
        if (strcmp(name, wpk_work_kind_name((enum wpk_work_kind)i)) == 0) {
            return true;
        }
    }
    return false;
}

/* `trial`: its row in new_trial; 0: it is not taken. */
static void stage_measurement(struct wpk_db_merge *m, struct wpk_json_reader *r, int64_t trial,
                              int64_t number)
{
    struct {
        WPK_DB_MEASUREMENT_LIST(FIELD)
    } row;
    WPK_DB_MEASUREMENT_LIST(READ)
    if (!is_kind(row.kind)) {
        wpk_json_fail(r, "kind", WPK_EINVAL, "no work is of that kind");
    }
    if (trial != 0 && wpk_json_status(r) == WPK_OK) {
        wpk_store_run(m->store,
                      INSERT("INTO new_measurement", "trial_id, number, epoch", "?, ?, ?",
                             WPK_DB_MEASUREMENT_LIST),
                      "iii" WPK_DB_MEASUREMENT_LIST(LETTER), trial, number,
                      wpk_store_epoch(m->store) WPK_DB_MEASUREMENT_LIST(VALUE));
    }
}

/* Of a candidate that is there twice the first counts. */
void wpk_db_merge_trial(struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    struct {
        WPK_DB_TRIAL_LIST(FIELD)
    } row;
    uint8_t hash[WPK_STORE_HASH_SIZE];
    enum wpk_outcome outcome;
    int64_t number = 0;
    WPK_DB_TRIAL_LIST(READ)
    if (wpk_outcome_parse(row.outcome, &outcome) != WPK_OK) {
        wpk_json_fail(r, "outcome", WPK_EINVAL, "no candidate ends so");
    }
    if (!in_problem(m, r)) {
        return;
    }
    wpk_store_hash(row.provider, row.candidate, hash);
    int taken =
        wpk_store_run(m->store,
                      INSERT("OR IGNORE INTO new_trial", "problem_id, candidate_hash, epoch",
                             "?, ?, ?", WPK_DB_TRIAL_LIST),
                      "ihi" WPK_DB_TRIAL_LIST(LETTER), m->problem, hash,
                      wpk_store_epoch(m->store) WPK_DB_TRIAL_LIST(VALUE));
    int64_t trial = taken > 0 ? wpk_store_inserted(m->store) : 0;
    wpk_json_enter_array(r, "measurements");
    while (wpk_json_next(r)) {
        stage_measurement(m, r, trial, number++);
    }
    wpk_json_leave(r);
}

/* ---- kernels */

static void check_manifest(struct wpk_json_reader *r, const struct wpk_db_merge *m,
                           const char *manifest, const char *artifact)
{
    struct wpk_kernel_manifest kernel;
    struct wpk_diag diag = {0};
    if (manifest[0] == '\0' || wpk_json_status(r) != WPK_OK) {
        return;
    }
    if (wpk_kernel_manifest_decode(manifest, strlen(manifest), &kernel, &diag) != WPK_OK) {
        wpk_json_fail(r, "manifest", WPK_EINVAL, "%s", diag.text);
    } else if (strcmp(kernel.fingerprint, m->fingerprint) != 0 ||
               (artifact[0] != '\0' && strcmp(kernel.artifact, artifact) != 0)) {
        wpk_json_fail(r, "manifest", WPK_EINVAL, "it is another kernel's");
    }
}

/* It stands in answers as it is. */
static void check_document(struct wpk_json_reader *r, const char *text)
{
    struct wpk_json_reader *document = NULL;
    if (wpk_json_status(r) == WPK_OK &&
        wpk_json_open(text, strlen(text), WPK_DB_TEXT_MAX, &document, NULL) != WPK_OK) {
        wpk_json_fail(r, "document", WPK_EINVAL, "it is no JSON");
    }
    wpk_json_close(document);
}

/* As the column has it, in the one spelling of the class. */
static void check_class(struct wpk_json_reader *r, const char *text)
{
    struct wpk_accuracy accuracy;
    char name[WPK_ACCURACY_TEXT_MAX] = "";
    if (wpk_json_status(r) == WPK_OK && wpk_accuracy_parse(text, &accuracy, NULL) == WPK_OK) {
        wpk_accuracy_name(accuracy, name);
    }
    if (name[0] == '\0' || strcmp(name, text) != 0) {
        wpk_json_fail(r, "accuracy", WPK_EINVAL, "it is no class of accuracy");
    }
}

void wpk_db_merge_kernel(struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    struct {
        WPK_DB_SEARCH_LIST(FIELD)
        WPK_DB_KERNEL_LIST(FIELD)
    } row;
    char signature[WPK_SIGNATURE_HEX_SIZE] = "";
    int64_t now_ns = (int64_t)wpk_store_wall_ns(m->store);
    wpk_json_enter(r, "search");
    WPK_DB_SEARCH_LIST(READ)
    check_class(r, row.accuracy);
    wpk_json_leave(r);
    WPK_DB_KERNEL_LIST(READ)
    check_manifest(r, m, row.manifest, row.artifact_sha256);
    check_document(r, row.document);
    if (!in_problem(m, r)) {
        return;
    }
    if (row.manifest[0] != '\0') {
        wpk_sign_text(m->sign, row.manifest, strlen(row.manifest), signature);
    }
    int taken = wpk_store_run(
        m->store,
        INSERT("OR IGNORE INTO new_kernel",
               "plain_sha256, served, pinned, revoked_at, revoked_reason, problem_id, accuracy,"
               " served_at, signature, epoch",
               "'', 0, 0, 0, '', ?, ?, ?, ?, ?", WPK_DB_KERNEL_LIST),
        "ititi" WPK_DB_KERNEL_LIST(LETTER), m->problem, row.accuracy, now_ns, signature,
        wpk_store_epoch(m->store) WPK_DB_KERNEL_LIST(VALUE));
    if (taken > 0) {
        wpk_store_run(m->store,
                      INSERT("INTO new_search",
                             "elapsed_ns, ended_asks, exhausted, snapshot, snapshot_version,"
                             " snapshot_told, ok_count, failed_count, known_count, best, anchor,"
                             " stand_in, stand_in_ratio, rowid, problem_id, created_at, epoch",
                             "0, 0, 0, '', '', 0, 0, 0, 0, '', '', '', 0, ?, ?, ?, ?",
                             WPK_DB_SEARCH_LIST),
                      "iiii" WPK_DB_SEARCH_LIST(LETTER), wpk_store_inserted(m->store), m->problem,
                      now_ns, wpk_store_epoch(m->store) WPK_DB_SEARCH_LIST(VALUE));
    }
}

/* ---- hints */

void wpk_db_merge_hint(struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    struct {
        WPK_DB_HINT_LIST(FIELD)
    } row;
    WPK_DB_HINT_LIST(READ)
    if (wpk_json_status(r) == WPK_OK && !(row.time_ns > 0)) {
        wpk_json_fail(r, "time_ns", WPK_ERANGE, "a time is above 0");
    }
    if (wpk_json_status(r) == WPK_OK) {
        m->hints += wpk_store_run(
            m->store, INSERT("OR IGNORE INTO hint", "created_at, epoch", "?, ?", WPK_DB_HINT_LIST),
            "ii" WPK_DB_HINT_LIST(LETTER), (int64_t)wpk_store_wall_ns(m->store),
            wpk_store_epoch(m->store) WPK_DB_HINT_LIST(VALUE));
    }
}

/* ---- the temporary tables */

static void execute(struct wpk_db_merge *m, const char *sql)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_store_status(m->store);
    if (err == WPK_OK) {
        err = wpk_store_execute(m->store, sql, &diag);
    }
    if (err != WPK_OK) {
        wpk_store_fail(m->store, err, &diag);
    }
}

void wpk_db_merge_begin(struct wpk_db_merge *m)
{
    execute(m, "CREATE TEMP TABLE new_trial AS SELECT * FROM trial WHERE false;"
               "CREATE UNIQUE INDEX temp.new_trial_key ON new_trial (problem_id, candidate_hash);"
               "CREATE TEMP TABLE new_measurement AS SELECT * FROM measurement WHERE false;"
               "CREATE TEMP TABLE new_search AS SELECT * FROM search WHERE false;"
               "CREATE TEMP TABLE new_kernel AS SELECT * FROM kernel WHERE false;"
               "CREATE UNIQUE INDEX temp.new_kernel_key ON new_kernel"
               " (problem_id, provider, artifact_sha256, created_at, document)");
}

void wpk_db_merge_end(struct wpk_db_merge *m)
{
    struct wpk_buf sql = {0};
    wpk_buf_append(&sql, wpk_db_merge_sql, wpk_db_merge_sql_size);
    execute(m, wpk_buf_text(&sql));
    wpk_buf_fini(&sql);
    m->trials = first_int(wpk_store_query(m->store, "SELECT count(*) FROM new_trial", ""));
    m->kernels = first_int(wpk_store_query(m->store, "SELECT count(*) FROM new_kernel", ""));
    m->served = first_int(
        wpk_store_query(m->store, "SELECT count(*) FROM new_kernel WHERE served = 1", ""));
}
