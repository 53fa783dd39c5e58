/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning removes old jobs, the logs of searches, kernels, trials, artifacts and audit lines, then
 * invalid tokens, and owners without jobs and tokens. A search loses its state with its log, so
 * that it begins anew, and finds the trials that were kept. Of a job a row of gone_job is left.
 *
 * Kept whatever their age: live jobs and their searches; served, pinned, revoked and plain kernels;
 * of each problem's accuracy class the newest K kernels, of each problem the fastest K trials. */
#include "coordinator/db/db_command.h"
#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"
#include "coordinator/store/store.h"

#include <stdio.h>
#include <unistd.h>

#define DAY_NS (24 * 3600 * (int64_t)WPK_NS_PER_S)

/* Tables of the rows to delete and to keep, filled before anything is deleted. */
static const char tables_sql[] =
    "CREATE TEMP TABLE gone_search AS SELECT s.id FROM search s"
    " WHERE NOT EXISTS (SELECT 1 FROM job_op o JOIN job j ON j.number = o.job_number"
    "                   WHERE o.search_id = s.id"
    "                     AND (j.finished_at = 0 OR j.finished_at >= (SELECT at FROM cutoff)))"
    "   AND s.created_at < (SELECT at FROM cutoff);"
    "CREATE TEMP TABLE kept_kernel AS SELECT id FROM ("
    "  SELECT id, row_number() OVER (PARTITION BY problem_id, accuracy ORDER BY created_at DESC,"
    " id DESC)"
    "    AS place, created_at, served, pinned, revoked_at, provider FROM kernel)"
    "  WHERE place <= (SELECT keep FROM cutoff) OR served = 1 OR pinned = 1"
    "     OR provider = '" WPK_PLAIN_PROVIDER "'" /* other rows name it */
    "     OR revoked_at <> 0"                     /* else it could be found again */
    "     OR created_at >= (SELECT at FROM cutoff);"
    "CREATE TEMP TABLE kept_trial AS SELECT id FROM ("
    "  SELECT t.id, row_number() OVER (PARTITION BY t.problem_id ORDER BY min(m.median_ns), t.id)"
    "    AS place FROM trial t JOIN measurement m ON m.trial_id = t.id"
    "  WHERE t.outcome = 'ok' AND m.censored = 0 GROUP BY t.id)"
    "  WHERE place <= (SELECT keep FROM cutoff);";

/* One step: what goes, and what the report calls it; NULL: it only prepares the next. */
static const struct {
    const char *key;
    const char *sql;
} steps[] = {
    {NULL, "INSERT OR REPLACE INTO gone_job (id, document) SELECT id, json_object('id', id, 'name',"
           " name, 'owner', owner, 'state', state, 'finished', strftime('%Y-%m-%dT%H:%M:%SZ',"
           " finished_at / 1000000000, 'unixepoch'), 'pruned', strftime('%Y-%m-%dT%H:%M:%SZ'),"
           " 'op_count', (SELECT count(*) FROM job_op WHERE job_number = number), 'ops', json(("
           "SELECT json_group_array(json_object('name', value ->> 'name', 'best_ns',"
           " coalesce(value ->> '$.best.time_ns.median', 0))) FROM (SELECT value FROM json_each("
           "iif(json_valid(document), document, '{}'), '$.ops') LIMIT 16)))) FROM job WHERE"
           " finished_at <> 0 AND finished_at < (SELECT at FROM cutoff) ORDER BY number"},
    {NULL, "DELETE FROM gone_job WHERE number <= (SELECT max(number) FROM gone_job) - 10000"},
    {NULL, "DELETE FROM job_op WHERE job_number IN (SELECT number FROM job WHERE finished_at <> 0"
           " AND finished_at < (SELECT at FROM cutoff))"},
    {"jobs", "DELETE FROM job WHERE finished_at <> 0 AND finished_at < (SELECT at FROM cutoff)"},
    {"asks", "DELETE FROM ask WHERE search_id IN (SELECT id FROM gone_search)"},
    {NULL, "DELETE FROM search_bucket WHERE search_id IN (SELECT id FROM gone_search)"},
    {NULL, "DELETE FROM search_outcome WHERE search_id IN (SELECT id FROM gone_search)"},
    {NULL, "UPDATE measurement SET search_id = NULL WHERE search_id IN (SELECT id FROM"
           " gone_search)"},
    {NULL, "UPDATE search SET elapsed_ns = 0, ended_asks = 0, exhausted = 0, kernel_id = NULL,"
           " snapshot = '', snapshot_version = '', snapshot_told = 0, ok_count = 0,"
           " failed_count = 0, known_count = 0, best = '' WHERE id IN (SELECT id FROM"
           " gone_search)"},
    {"kernels", "DELETE FROM kernel WHERE id NOT IN (SELECT id FROM kept_kernel)"
                " AND NOT EXISTS (SELECT 1 FROM job_op o WHERE o.kernel_id = kernel.id)"
                " AND NOT EXISTS (SELECT 1 FROM search s WHERE s.kernel_id = kernel.id)"},
    {"searches", "DELETE FROM search WHERE id IN (SELECT id FROM gone_search)"
                 " AND NOT EXISTS (SELECT 1 FROM kernel k WHERE k.search_id = search.id)"
                 " AND NOT EXISTS (SELECT 1 FROM job_op o WHERE o.search_id = search.id)"},
    {NULL, "CREATE TEMP TABLE gone_trial AS SELECT id FROM trial t"
           " WHERE t.recorded_at < (SELECT at FROM cutoff)"
           " AND t.id NOT IN (SELECT id FROM kept_trial)"
           " AND t.id NOT IN (SELECT trial_id FROM ask)"
           " AND NOT EXISTS (SELECT 1 FROM kernel k WHERE k.problem_id = t.problem_id"
           "                 AND k.artifact_sha256 = t.artifact_sha256"
           "                 AND t.artifact_sha256 <> '')"},
    {"measurements", "DELETE FROM measurement WHERE trial_id IN (SELECT id FROM gone_trial)"},
    {"trials", "DELETE FROM trial WHERE id IN (SELECT id FROM gone_trial)"},
    {"problems", "DELETE FROM problem WHERE created_at < (SELECT at FROM cutoff)"
                 " AND NOT EXISTS (SELECT 1 FROM trial t WHERE t.problem_id = problem.id)"
                 " AND NOT EXISTS (SELECT 1 FROM search s WHERE s.problem_id = problem.id)"
                 " AND NOT EXISTS (SELECT 1 FROM kernel k WHERE k.problem_id = problem.id)"},
    /* As many keep an artifact as there are left that do: else the quota would never reach it. */
    {NULL, "CREATE TEMP TABLE keeper (sha256 PRIMARY KEY, count)"},
    {NULL, "INSERT INTO keeper SELECT sha256, count(*) FROM ("
           "SELECT t.artifact_sha256 AS sha256 FROM search s,"
           " json_each('[' || rtrim(replace(s.best, ';', ','), ',') || ']') b"
           " JOIN ask a ON a.search_id = s.id AND a.number = b.value"
           " JOIN trial t ON t.id = a.trial_id"
           " UNION ALL SELECT DISTINCT CASE json_valid(document) WHEN 1"
           " THEN json_extract(document, '$.own.artifact') END FROM kernel)"
           " WHERE sha256 <> '' GROUP BY sha256"},
    {NULL, "UPDATE artifact SET kept = min(kept, coalesce((SELECT count FROM keeper k"
           " WHERE k.sha256 = artifact.sha256), 0)) WHERE kept > 0"},
    {NULL, "CREATE TEMP TABLE gone_artifact AS SELECT sha256 FROM artifact"
           " WHERE sha256 NOT IN (SELECT artifact_sha256 FROM trial)"
           " AND sha256 NOT IN (SELECT artifact_sha256 FROM kernel)"
           " AND created_at < (SELECT at FROM cutoff)"},
    {"artifacts", "DELETE FROM artifact WHERE sha256 IN (SELECT sha256 FROM gone_artifact)"},
    {NULL, "UPDATE installation SET artifact_bytes ="
           " (SELECT coalesce(sum(size), 0) FROM artifact)"},
    {"audit", "DELETE FROM audit WHERE at < (SELECT at FROM cutoff)"},
    {NULL, "DELETE FROM miss WHERE seen_at < (SELECT at FROM cutoff)"},
    {NULL, "DELETE FROM idempotency WHERE created_at < (SELECT at FROM cutoff)"},
    {"tokens", "DELETE FROM token WHERE (revoked_at <> 0 AND revoked_at < (SELECT at FROM cutoff))"
               " OR (expires_at <> 0 AND expires_at < (SELECT at FROM cutoff))"},
    {"owners", "DELETE FROM owner WHERE name NOT IN (SELECT owner FROM job)"
               " AND name NOT IN (SELECT owner FROM token)"},
};

/* Files go when their rows are durably gone: one that stays is harmless, one missing is not. Those
 * go too that never had a row, or whose row went when wpkd was killed: no quota counts them. */
static wpk_err remove_files(struct wpk_store *store, const char *data_dir,
                            struct wpk_db_report *report, struct wpk_diag *diag)
{
    struct wpk_rows *rows = wpk_store_query(store, "SELECT sha256 FROM gone_artifact", "");
    while (wpk_rows_next(rows)) {
        wpk_artifact_remove(data_dir, wpk_rows_text(rows, 0));
    }
    uint32_t strays = wpk_history_sweep_artifacts(store, data_dir);
    if (strays > 0) {
        wpk_db_say(report, "stray_files", strays);
    }
    return wpk_store_take_status(store, diag);
}

/* Checked once in the end instead of at each row, whose children have no index to be found by. */
static void check_references(struct wpk_store *store)
{
    const struct wpk_diag broken = {.text = "something kept would name something forgotten"};
    if (wpk_rows_take(wpk_store_query(store, "PRAGMA foreign_key_check", ""), "")) {
        wpk_store_fail(store, WPK_ECORRUPT, &broken);
    }
}

static wpk_err prune(struct wpk_store *store, const struct wpk_db_options *options,
                     struct wpk_db_report *report, struct wpk_diag *diag)
{
    char cutoff[160];
    int64_t at = (int64_t)wpk_store_wall_ns(store) - options->older_than_days * DAY_NS;
    snprintf(cutoff, sizeof cutoff, "CREATE TEMP TABLE cutoff AS SELECT %lld AS at, %lld AS keep",
             (long long)at, (long long)options->keep);
    wpk_err err = wpk_store_execute(store, "PRAGMA foreign_keys = OFF", diag);
    err = err == WPK_OK ? wpk_store_execute(store, cutoff, diag) : err;
    err = err == WPK_OK ? wpk_store_execute(store, tables_sql, diag) : err;
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_diag dry = {.text = "dry run"};
    wpk_store_begin(store);
    wpk_json_put_bool(report->json, "dry_run", options->dry_run);
    wpk_buf_append_text(&report->text,
                        options->dry_run
                            ? "dry run: nothing was removed; without --dry-run this goes:\n"
                            : "removed:\n");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int changed = wpk_store_run(store, steps[i].sql, "");
        if (steps[i].key != NULL) {
            wpk_db_say(report, steps[i].key, changed);
        }
    }
    check_references(store);
    bool worked = wpk_store_status(store) == WPK_OK;
    if (worked && options->dry_run) {
        wpk_store_fail(store, WPK_EINVAL, &dry); /* the batch is rolled back */
    }
    err = wpk_store_commit(store, diag);
    if (worked && options->dry_run) {
        *diag = (struct wpk_diag){0};
        return WPK_OK;
    }
    err = err == WPK_OK ? remove_files(store, options->data_dir, report, diag) : err;
    /* VACUUM frees the space of the deleted rows; it needs room for a copy of the database. */
    return err == WPK_OK ? wpk_store_execute(store, "VACUUM", diag) : err;
}

wpk_err wpk_db_prune(const struct wpk_db_options *options, struct wpk_db_report *report,
                     struct wpk_diag *diag)
{
    int lock = -1;
    struct wpk_store *store = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/history.db", options->data_dir);
    if (access(path, F_OK) != 0) {
        return wpk_fail(diag, WPK_ENOENT,
                        "there is no history in %s; name its directory with --data",
                        options->data_dir);
    }
    wpk_err err = wpk_lock_take(options->data_dir, &lock, diag);
    err = err == WPK_OK ? wpk_store_open(options->data_dir, wpk_clock_system(), &store, diag) : err;
    if (err == WPK_OK) {
        err = prune(store, options, report, diag);
        wpk_store_close(store);
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    return err;
}
