/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/db/db_merge.h"

#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"
#include "op/fingerprint.h"
#include "op/notation.h"
#include "schema/kernel_manifest.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX ((size_t)4 << 20) /* of an operator, a candidate or a document */
#define KEY_MAX ((size_t)4096)     /* of one field of a key */
#define REAL_MAX 1e300

static int64_t now_of(const struct wpk_db_merge *m)
{
    return (int64_t)wpk_store_wall_ns(m->store);
}

static int64_t get_time(struct wpk_json_reader *r, const char *key)
{
    uint64_t value = wpk_json_get_u64(r, key);
    if (value > INT64_MAX) {
        wpk_json_fail(r, key, WPK_ERANGE, "too large");
        return 0;
    }
    return (int64_t)value;
}

static int64_t first_int(struct wpk_rows *rows)
{
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : 0;
    wpk_rows_close(rows);
    return value;
}

/* ---- artifacts */

static bool has_artifact(const struct wpk_db_merge *m, const char *sha256)
{
    return first_int(wpk_store_query(m->store, "SELECT 1 FROM artifact WHERE sha256 = ?", "t",
                                     sha256)) != 0;
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
    } else if (!has_artifact(m, sha256)) {
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
    struct wpk_fingerprint identity = {0};
    const char *fingerprint = wpk_json_get_text(r, "fingerprint", KEY_MAX);
    const char *layouts = wpk_json_get_text(r, "layouts", KEY_MAX);
    const char *device_class = wpk_json_get_text(r, "device_class", KEY_MAX);
    const char *environment = wpk_json_get_text(r, "environment", KEY_MAX);
    const char *policy = wpk_json_get_text(r, "policy", KEY_MAX);
    const char *op = wpk_json_get_text(r, "op", TEXT_MAX);
    double flops = wpk_json_get_real(r, "flops", 0, REAL_MAX);
    int64_t created = get_time(r, "created_at");
    identify(r, op, fingerprint, &identity);
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    snprintf(m->fingerprint, sizeof m->fingerprint, "%s", fingerprint);
    m->problem = first_int(wpk_store_query(
        m->store,
        "SELECT id FROM problem WHERE fingerprint = ? AND layouts = ? AND device_class = ?"
        " AND environment = ? AND policy = ?",
        "ttttt", fingerprint, layouts, device_class, environment, policy));
    if (m->problem == 0) {
        wpk_store_run(m->store,
                      "INSERT INTO problem (fingerprint, layouts, device_class, environment,"
                      " policy, family, extents, op, flops, created_at, epoch)"
                      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      "ttttttttrii", fingerprint, layouts, device_class, environment, policy,
                      identity.family, identity.extents, op, flops, created,
                      wpk_store_epoch(m->store));
        m->problem = wpk_store_inserted(m->store);
        m->problems++;
    }
}

static bool in_problem(const struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    if (m->problem == 0) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "it belongs to no problem");
    }
    return wpk_json_status(r) == WPK_OK;
}

/* ---- trials */

struct trial {
    const char *provider, *candidate, *outcome, *log, *detail, *schedule_sha256, *artifact_sha256;
    double error_max, error_tolerance, of_rms, times_direct;
    int64_t constants_bytes;
    const char *unseen, *recipe;
    int64_t build_ns, verify_ns, recorded_at;
};

static void get_trial(struct wpk_json_reader *r, struct trial *t)
{
    static const char *const outcomes[] = {
#define OUTCOME_NAME(name, text) text,
        WPK_OUTCOME_LIST(OUTCOME_NAME)
#undef OUTCOME_NAME
    };
    t->provider = wpk_json_get_text(r, "provider", KEY_MAX);
    t->candidate = wpk_json_get_text(r, "candidate", TEXT_MAX);
    t->outcome =
        outcomes[wpk_json_get_choice(r, "outcome", outcomes, sizeof outcomes / sizeof *outcomes)];
    t->log = wpk_json_get_text(r, "log", TEXT_MAX);
    t->detail = wpk_json_get_text(r, "detail", TEXT_MAX);
    t->schedule_sha256 = wpk_json_get_text(r, "schedule_sha256", KEY_MAX);
    t->artifact_sha256 = wpk_json_get_text(r, "artifact_sha256", KEY_MAX);
    t->error_max = wpk_json_get_real(r, "error_max", 0, REAL_MAX);
    t->error_tolerance = wpk_json_get_real(r, "error_tolerance", 0, REAL_MAX);
    t->of_rms = wpk_json_get_real(r, "of_rms", 0, REAL_MAX);
    t->times_direct = wpk_json_get_real(r, "times_direct", -1, REAL_MAX);
    t->constants_bytes = wpk_json_get_int(r, "constants_bytes", 0, WPK_JSON_INT_MAX);
    t->unseen = wpk_json_get_text(r, "unseen", TEXT_MAX);
    t->recipe = wpk_json_has(r, "recipe") ? wpk_json_get_text(r, "recipe", TEXT_MAX) : "";
    t->build_ns = get_time(r, "build_ns");
    t->verify_ns = get_time(r, "verify_ns");
    t->recorded_at = get_time(r, "recorded_at");
}

/* The row to fill; 0: what is known here stays. */
static int64_t make_room(struct wpk_db_merge *m, const struct trial *t)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    wpk_store_hash(t->provider, t->candidate, hash);
    struct wpk_rows *rows = wpk_store_query(
        m->store, "SELECT id, outcome FROM trial WHERE problem_id = ? AND candidate_hash = ?", "ih",
        m->problem, hash);
    bool there = wpk_rows_next(rows);
    int64_t id = there ? wpk_rows_int(rows, 0) : 0;
    bool settled = there && wpk_rows_text(rows, 1)[0] != '\0' &&
                   strcmp(wpk_rows_text(rows, 1), "abandoned") != 0;
    wpk_rows_close(rows);
    if (there) {
        return settled ? 0 : id;
    }
    wpk_store_run(m->store,
                  "INSERT INTO trial (problem_id, provider, candidate, candidate_hash, outcome,"
                  " log, detail, schedule_sha256, artifact_sha256, error_max, error_tolerance,"
                  " of_rms, times_direct, constants_bytes, unseen, build_ns, verify_ns,"
                  " recorded_at, epoch)"
                  " VALUES (?, ?, ?, ?, '', '', '', '', '', 0, 0, 0, -1, 0, '', 0, 0, 0, ?)",
                  "itthi", m->problem, t->provider, t->candidate, hash, wpk_store_epoch(m->store));
    return wpk_store_inserted(m->store);
}

static void put_measurement(struct wpk_db_merge *m, struct wpk_json_reader *r, int64_t trial,
                            int64_t number)
{
    const char *kinds[WPK_WORK_COUNT];
    for (int i = 0; i < WPK_WORK_COUNT; i++) {
        kinds[i] = wpk_work_kind_name((enum wpk_work_kind)i);
    }
    size_t kind = wpk_json_get_choice(r, "kind", kinds, WPK_WORK_COUNT);
    const char *worker = wpk_json_get_text(r, "worker", KEY_MAX);
    const char *instance = wpk_json_get_text(r, "instance", KEY_MAX);
    int64_t median = wpk_json_get_int(r, "median_ns", 0, WPK_JSON_INT_MAX);
    int64_t min = wpk_json_get_int(r, "min_ns", 0, WPK_JSON_INT_MAX);
    int64_t mad = wpk_json_get_int(r, "mad_ns", 0, WPK_JSON_INT_MAX);
    int64_t repeat = wpk_json_get_int(r, "repeat_count", 0, WPK_JSON_INT_MAX);
    int64_t censored = wpk_json_get_int(r, "censored", 0, 1);
    int64_t anchor_ns = wpk_json_get_int(r, "anchor_ns", 0, WPK_JSON_INT_MAX);
    double anchor_ratio = wpk_json_get_real(r, "anchor_ratio", 0, REAL_MAX);
    const char *anchor = wpk_json_get_text(r, "anchor", KEY_MAX);
    const char *samples = wpk_json_get_text(r, "samples_ns", TEXT_MAX);
    const char *counters = wpk_json_get_text(r, "counters", TEXT_MAX);
    int64_t measured = get_time(r, "measured_at");
    if (wpk_json_status(r) == WPK_OK) {
        wpk_store_run(m->store,
                      "INSERT INTO measurement (trial_id, number, kind, search_id, worker,"
                      " instance, median_ns, min_ns, mad_ns, repeat_count, censored, anchor_ns,"
                      " anchor_ratio, anchor, samples_ns, counters, measured_at, epoch)"
                      " VALUES (?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      "iitttiiiiiirtttii", trial, number, kinds[kind], worker, instance, median,
                      min, mad, repeat, censored, anchor_ns, anchor_ratio, anchor, samples,
                      counters, measured, wpk_store_epoch(m->store));
    }
}

void wpk_db_merge_trial(struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    struct trial t;
    get_trial(r, &t);
    int64_t id = in_problem(m, r) ? make_room(m, &t) : 0;
    if (id == 0) {
        return;
    }
    bool stands = t.candidate[0] == '\0' || t.artifact_sha256[0] != '\0';
    if (stands && strcmp(t.outcome, "ok") == 0 &&
        wpk_history_is_revoked(m->store, (uint64_t)m->problem, t.provider, t.artifact_sha256)) {
        t.outcome = wpk_outcome_name(WPK_OUTCOME_WRONG_RESULT);
        t.log = "revoked before";
    }
    wpk_store_run(m->store,
                  "UPDATE trial SET outcome = ?, log = ?, detail = ?, schedule_sha256 = ?,"
                  " artifact_sha256 = ?, error_max = ?, error_tolerance = ?, of_rms = ?,"
                  " times_direct = ?, constants_bytes = ?, unseen = ?, recipe = ?,"
                  " build_ns = ?, verify_ns = ?, recorded_at = ? WHERE id = ?",
                  "tttttrrrrittiiii", t.outcome, t.log, t.detail, t.schedule_sha256,
                  has_artifact(m, t.artifact_sha256) ? t.artifact_sha256 : "", t.error_max,
                  t.error_tolerance, t.of_rms, t.times_direct, t.constants_bytes, t.unseen,
                  t.recipe, t.build_ns, t.verify_ns, t.recorded_at, id);
    int64_t number = first_int(wpk_store_query(
        m->store, "SELECT coalesce(max(number) + 1, 0) FROM measurement WHERE trial_id = ?", "i",
        id));
    wpk_json_enter_array(r, "measurements");
    while (wpk_json_next(r)) {
        put_measurement(m, r, id, number++);
    }
    wpk_json_leave(r);
    m->trials++;
}

/* ---- kernels */

/* As the column has it, in the one spelling of the class. */
static const char *get_accuracy(struct wpk_json_reader *r)
{
    const char *text = wpk_json_get_text(r, "accuracy", WPK_ACCURACY_TEXT_MAX - 1);
    struct wpk_accuracy accuracy;
    char name[WPK_ACCURACY_TEXT_MAX];
    if (wpk_json_status(r) == WPK_OK && wpk_accuracy_parse(text, &accuracy, NULL) == WPK_OK) {
        wpk_accuracy_name(accuracy, name);
        if (strcmp(name, text) == 0) {
            return text;
        }
    }
    wpk_json_fail(r, "accuracy", WPK_EINVAL, "it is no class of accuracy");
    return "";
}

/* The search that it was the answer of: without a log, so that it would begin anew here. */
static int64_t find_search(struct wpk_db_merge *m, struct wpk_json_reader *r, const char **accuracy)
{
    wpk_json_enter(r, "search");
    const char *strategy = wpk_json_get_text(r, "strategy", KEY_MAX);
    const char *parameters = wpk_json_get_text(r, "parameters", KEY_MAX);
    const char *seed = wpk_json_get_text(r, "seed", KEY_MAX);
    const char *providers = wpk_json_get_text(r, "providers", KEY_MAX);
    const char *space = wpk_json_get_text(r, "space_version", KEY_MAX);
    *accuracy = get_accuracy(r);
    wpk_json_leave(r);
    if (wpk_json_status(r) != WPK_OK) {
        return 0;
    }
    int64_t id = first_int(wpk_store_query(
        m->store,
        "SELECT id FROM search WHERE problem_id = ? AND strategy = ? AND parameters = ?"
        " AND seed = ? AND providers = ? AND space_version = ? AND accuracy = ?",
        "itttttt", m->problem, strategy, parameters, seed, providers, space, *accuracy));
    if (id == 0) {
        wpk_store_run(m->store,
                      "INSERT INTO search (problem_id, strategy, parameters, seed, providers,"
                      " space_version, elapsed_ns, ended_asks, exhausted, snapshot,"
                      " snapshot_version, snapshot_told, ok_count, failed_count, known_count, best,"
                      " accuracy, anchor, stand_in, stand_in_ratio, created_at, epoch) VALUES"
                      " (?, ?, ?, ?, ?, ?, 0, 0, 0, '', '', 0, 0, 0, 0, '', ?, '', '', 0, ?, ?)",
                      "ittttttii", m->problem, strategy, parameters, seed, providers, space,
                      *accuracy, now_of(m), wpk_store_epoch(m->store));
        id = wpk_store_inserted(m->store);
    }
    return id;
}

struct kernel {
    const char *provider, *artifact_sha256, *verified_by, *document, *manifest;
    double times_direct;
    int64_t median_ns, created_at;
};

static void check_manifest(struct wpk_json_reader *r, const struct wpk_db_merge *m,
                           const struct kernel *k)
{
    struct wpk_kernel_manifest manifest;
    struct wpk_diag diag = {0};
    if (k->manifest[0] == '\0' || wpk_json_status(r) != WPK_OK) {
        return;
    }
    if (wpk_kernel_manifest_decode(k->manifest, strlen(k->manifest), &manifest, &diag) != WPK_OK) {
        wpk_json_fail(r, "manifest", WPK_EINVAL, "%s", diag.text);
    } else if (strcmp(manifest.fingerprint, m->fingerprint) != 0 ||
               (k->artifact_sha256[0] != '\0' &&
                strcmp(manifest.artifact, k->artifact_sha256) != 0)) {
        wpk_json_fail(r, "manifest", WPK_EINVAL, "it is another kernel's");
    }
}

/* It stands in answers as it is. */
static void check_document(struct wpk_json_reader *r, const struct kernel *k)
{
    struct wpk_json_reader *document = NULL;
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    if (wpk_json_open(k->document, strlen(k->document), TEXT_MAX, &document, NULL) != WPK_OK) {
        wpk_json_fail(r, "document", WPK_EINVAL, "it is no JSON");
    }
    wpk_json_close(document);
}

static bool is_to_be_served(const struct wpk_db_merge *m, const char *accuracy, int64_t median_ns)
{
    struct wpk_rows *rows = wpk_store_query(
        m->store,
        "SELECT median_ns, pinned FROM kernel WHERE problem_id = ? AND accuracy = ? AND served = 1",
        "it", m->problem, accuracy);
    bool there = wpk_rows_next(rows);
    bool serve = !there || (wpk_rows_int(rows, 1) == 0 && median_ns < wpk_rows_int(rows, 0));
    wpk_rows_close(rows);
    return serve;
}

static void put_kernel(struct wpk_db_merge *m, const struct kernel *k, int64_t search,
                       const char *accuracy)
{
    char signature[WPK_SIGNATURE_HEX_SIZE] = "";
    bool serve = is_to_be_served(m, accuracy, k->median_ns);
    if (k->manifest[0] != '\0') {
        wpk_sign_text(m->sign, k->manifest, strlen(k->manifest), signature);
    }
    if (serve) {
        wpk_store_run(m->store,
                      "UPDATE kernel SET served = 0 WHERE problem_id = ? AND accuracy = ?"
                      " AND served = 1",
                      "it", m->problem, accuracy);
    }
    wpk_store_run(
        m->store,
        "INSERT INTO kernel (problem_id, search_id, provider, artifact_sha256,"
        " plain_sha256, accuracy, times_direct, median_ns, served, served_at, pinned,"
        " revoked_at, revoked_reason, verified_by, document, manifest, signature,"
        " created_at, epoch) VALUES (?1, ?, ?, ?,"
        " coalesce((SELECT n.artifact_sha256 FROM kernel n WHERE n.problem_id = ?1"
        " AND n.provider = '" WPK_PLAIN_PROVIDER "' LIMIT 1), ''), ?, ?, ?, ?,"
        " iif(?9 > 0, max(?9, " WPK_HISTORY_SERVED_AFTER "), 0), 0, 0, '', ?, ?, ?, ?, ?, ?)",
        "iitttriiittttii", m->problem, search, k->provider, k->artifact_sha256, accuracy,
        k->times_direct, k->median_ns, (int64_t)serve, serve ? now_of(m) : 0, k->verified_by,
        k->document, k->manifest, signature, k->created_at, wpk_store_epoch(m->store));
    if (strcmp(k->provider, WPK_PLAIN_PROVIDER) == 0) {
        wpk_store_run(m->store, "UPDATE kernel SET plain_sha256 = ? WHERE problem_id = ?", "ti",
                      k->artifact_sha256, m->problem);
    }
    m->kernels++;
    m->served += serve;
}

void wpk_db_merge_kernel(struct wpk_db_merge *m, struct wpk_json_reader *r)
{
    struct kernel k = {
        .provider = wpk_json_get_text(r, "provider", KEY_MAX),
        .artifact_sha256 = wpk_json_get_text(r, "artifact_sha256", KEY_MAX),
        .verified_by = wpk_json_get_text(r, "verified_by", KEY_MAX),
        .document = wpk_json_get_text(r, "document", TEXT_MAX),
        .manifest = wpk_json_get_text(r, "manifest", TEXT_MAX),
        .times_direct = wpk_json_get_real(r, "times_direct", -1, REAL_MAX),
        .median_ns = get_time(r, "median_ns"),
        .created_at = get_time(r, "created_at"),
    };
    check_manifest(r, m, &k);
    check_document(r, &k);
    if (!in_problem(m, r)) {
        return;
    }
    bool known =
        first_int(wpk_store_query(m->store,
                                  "SELECT 1 FROM kernel WHERE problem_id = ? AND provider = ?"
                                  " AND artifact_sha256 = ? AND created_at = ? AND document = ?",
                                  "ittit", m->problem, k.provider, k.artifact_sha256, k.created_at,
                                  k.document)) != 0;
    bool revoked =
        wpk_history_is_revoked(m->store, (uint64_t)m->problem, k.provider, k.artifact_sha256);
    /* One of ours without its object is of no use: the trial that it was is built again. */
    if (known || revoked || (k.artifact_sha256[0] != '\0' && !has_artifact(m, k.artifact_sha256))) {
        return;
    }
    const char *accuracy = "";
    int64_t search = find_search(m, r, &accuracy);
    if (search != 0) {
        put_kernel(m, &k, search, accuracy);
    }
}
