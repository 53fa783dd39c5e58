/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/history_admin.h"

#include <stdio.h>
#include <string.h>

void wpk_history_origin(struct wpk_store *store, uint64_t problem_id, const char *provider,
                        const char *candidate, struct wpk_history_origin *out)
{
    struct wpk_trial_summary trial;
    memset(out, 0, sizeof *out);
    if (!wpk_history_find_trial(store, problem_id, provider, candidate, &trial, &out->trial_id)) {
        return;
    }
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT worker, measured_at FROM measurement WHERE trial_id = ?"
                        " ORDER BY number DESC LIMIT 1",
                        "i", (int64_t)out->trial_id);
    wpk_rows_take(rows, "tu", out->worker, sizeof out->worker, &out->measured_at);
}

/* ---- kernels */

#define KERNEL_COLUMNS                                                                             \
    "k.id, k.problem_id, k.served, k.pinned, k.revoked_at, k.revoked_reason, k.verified_by,"       \
    " k.manifest, k.signature, k.document, " WPK_HISTORY_ASKED

static struct wpk_kernel_row read_kernel(const struct wpk_rows *rows)
{
    struct wpk_kernel_row row;
    wpk_rows_get(rows, "uuffusssssss", &row.id, &row.problem_id, &row.served, &row.pinned,
                 &row.revoked_at, &row.revoked_reason, &row.verified_by, &row.manifest,
                 &row.signature, &row.document, &row.job, &row.owner);
    return row;
}

bool wpk_history_read_kernel(struct wpk_store *store, uint64_t id, wpk_kernel_row_fn fn, void *user)
{
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT " KERNEL_COLUMNS " FROM kernel k WHERE k.id = ?", "i", (int64_t)id);
    bool found = wpk_rows_next(rows);
    if (found) {
        struct wpk_kernel_row row = read_kernel(rows);
        fn(user, &row);
    }
    wpk_rows_close(rows);
    return found;
}

uint64_t wpk_history_kernel_line(struct wpk_store *store, uint64_t id, uint64_t before,
                                 int page_size, wpk_kernel_row_fn fn, void *user)
{
    uint64_t last = 0;
    int count = 0;
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT " KERNEL_COLUMNS " FROM kernel k WHERE k.problem_id ="
                        " (SELECT problem_id FROM kernel WHERE id = ?) AND k.id < ?"
                        " ORDER BY k.id DESC LIMIT ?",
                        "iii", (int64_t)id, (int64_t)before, (int64_t)page_size + 1);
    while (wpk_rows_next(rows)) {
        if (count++ == page_size) {
            wpk_rows_close(rows);
            return last;
        }
        struct wpk_kernel_row row = read_kernel(rows);
        last = row.id;
        fn(user, &row);
    }
    return 0;
}

/* ---- changes */

/* The state of a kernel before a change. */
struct standing {
    bool served;
    bool pinned;
    bool revoked;
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact_sha256[WPK_ID_MAX];
};

static bool find_kernel(struct wpk_store *store, struct wpk_kernel_change *change,
                        struct standing *out)
{
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT problem_id, served, pinned, revoked_at <> 0, provider,"
                        " artifact_sha256, accuracy FROM kernel WHERE id = ?",
                        "i", (int64_t)change->kernel_id);
    return wpk_rows_take(rows, "ufffttt", &change->problem_id, &out->served, &out->pinned,
                         &out->revoked, out->provider, sizeof out->provider, out->artifact_sha256,
                         sizeof out->artifact_sha256, change->accuracy, sizeof change->accuracy);
}

/* Serve this one of the problem and class, and no other; 0: none. That it is served again is no new
 * time of `served_at`: a rollback after a rollback goes further back. The first time is one. */
static void serve_only(struct wpk_store *store, const struct wpk_kernel_change *change,
                       const char *accuracy, uint64_t id)
{
    wpk_store_run(store,
                  "UPDATE kernel SET served = 0, pinned = 0 WHERE problem_id = ? AND accuracy = ?",
                  "it", (int64_t)change->problem_id, accuracy);
    if (id != 0) {
        wpk_store_run(store,
                      "UPDATE kernel SET served = 1, served_at = iif(served_at > 0, served_at,"
                      " max(?2, " WPK_HISTORY_SERVED_AFTER ")) WHERE id = ?3",
                      "iii", (int64_t)change->problem_id, (int64_t)wpk_store_wall_ns(store),
                      (int64_t)id);
    }
}

/* List the kernels that the problem serves now, that of the changed kernel's class first. */
static wpk_err end_change(struct wpk_store *store, struct wpk_kernel_change *change)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT id, provider, artifact_sha256, accuracy FROM kernel"
        " WHERE problem_id = ? AND served = 1 ORDER BY accuracy <> ?, id DESC"
        " LIMIT ?",
        "iti", (int64_t)change->problem_id, change->accuracy, (int64_t)WPK_SERVED_MAX);
    change->serves = 0;
    change->served_count = 0;
    while (wpk_rows_next(rows)) {
        struct wpk_served_kernel *served = &change->served[change->served_count++];
        wpk_rows_get(rows, "uttt", &served->kernel_id, served->provider, sizeof served->provider,
                     served->artifact_sha256, sizeof served->artifact_sha256, served->accuracy,
                     sizeof served->accuracy);
        if (strcmp(served->accuracy, change->accuracy) == 0) {
            change->serves = served->kernel_id;
        }
    }
    return WPK_OK;
}

wpk_err wpk_history_pin(struct wpk_store *store, struct wpk_kernel_change *change,
                        struct wpk_diag *diag)
{
    struct standing standing;
    if (!find_kernel(store, change, &standing)) {
        return WPK_ENOENT;
    }
    if (standing.revoked) {
        return wpk_fail(diag, WPK_EEXIST, "the kernel was revoked");
    }
    serve_only(store, change, change->accuracy, change->kernel_id);
    wpk_store_run(store,
                  "UPDATE kernel SET pinned = 1,"
                  " served_at = iif(?2, served_at, max(?3, " WPK_HISTORY_SERVED_AFTER
                  ")) WHERE id = ?4",
                  "iiii", (int64_t)change->problem_id, (int64_t)standing.served,
                  (int64_t)wpk_store_wall_ns(store), (int64_t)change->kernel_id);
    return end_change(store, change);
}

wpk_err wpk_history_unpin(struct wpk_store *store, struct wpk_kernel_change *change,
                          struct wpk_diag *diag)
{
    struct standing standing;
    if (!find_kernel(store, change, &standing)) {
        return WPK_ENOENT;
    }
    if (!standing.pinned) {
        return wpk_fail(diag, WPK_EEXIST, "the kernel is not pinned");
    }
    wpk_store_run(store, "UPDATE kernel SET pinned = 0 WHERE id = ?", "i",
                  (int64_t)change->kernel_id);
    return end_change(store, change);
}

/* Every kernel with the same code, or of the same vendor, goes; and its trials have failed, so that
 * no search comes to it again. */
static void revoke_same(struct wpk_store *store, const struct wpk_kernel_change *change,
                        const struct standing *standing)
{
    wpk_store_run(store,
                  "UPDATE kernel SET revoked_at = ?, revoked_reason = ? WHERE problem_id = ?"
                  " AND revoked_at = 0 AND +artifact_sha256 = ?"
                  " AND (artifact_sha256 <> '' OR provider = ?)",
                  "ititt", (int64_t)wpk_store_wall_ns(store), change->reason,
                  (int64_t)change->problem_id, standing->artifact_sha256, standing->provider);
    wpk_store_run(store,
                  "UPDATE trial SET outcome = ?, log = 'revoked: ' || ? WHERE problem_id = ?"
                  " AND outcome = 'ok' AND artifact_sha256 = ?"
                  " AND (artifact_sha256 <> '' OR (candidate = '' AND provider = ?))",
                  "ttitt", wpk_outcome_name(WPK_OUTCOME_WRONG_RESULT), change->reason,
                  (int64_t)change->problem_id, standing->artifact_sha256, standing->provider);
}

/* A class of the problem that serves what was revoked; false when there is none. */
static bool find_revoked_class(struct wpk_store *store, uint64_t problem_id,
                               char out[WPK_ACCURACY_TEXT_MAX])
{
    struct wpk_rows *rows = wpk_store_query(store,
                                            "SELECT accuracy FROM kernel WHERE problem_id = ?"
                                            " AND served = 1 AND revoked_at <> 0 LIMIT 1",
                                            "i", (int64_t)problem_id);
    return wpk_rows_take(rows, "t", out, (size_t)WPK_ACCURACY_TEXT_MAX);
}

/* Each class that serves what was revoked serves the fastest that is left of our own, which were
 * verified on fresh inputs, else the vendor's, else the plain kernel. */
static void serve_next(struct wpk_store *store, const struct wpk_kernel_change *change)
{
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    while (find_revoked_class(store, change->problem_id, accuracy)) {
        uint64_t next = wpk_rows_take_id(
            wpk_store_query(store,
                            "SELECT id FROM kernel WHERE problem_id = ? AND accuracy = ?"
                            " AND revoked_at = 0"
                            " ORDER BY provider = '" WPK_PLAIN_PROVIDER
                            "', artifact_sha256 = '', median_ns, id DESC LIMIT 1",
                            "it", (int64_t)change->problem_id, accuracy));
        serve_only(store, change, accuracy, next);
    }
}

wpk_err wpk_history_revoke(struct wpk_store *store, struct wpk_kernel_change *change,
                           struct wpk_diag *diag)
{
    struct standing standing;
    if (!find_kernel(store, change, &standing)) {
        return WPK_ENOENT;
    }
    if (standing.revoked) {
        return wpk_fail(diag, WPK_EEXIST, "the kernel was revoked before");
    }
    revoke_same(store, change, &standing);
    snprintf(change->provider, sizeof change->provider, "%s", standing.provider);
    memcpy(change->artifact_sha256, standing.artifact_sha256, sizeof change->artifact_sha256);
    serve_next(store, change);
    return end_change(store, change);
}

wpk_err wpk_history_roll_back(struct wpk_store *store, struct wpk_kernel_change *change,
                              struct wpk_diag *diag)
{
    struct standing standing;
    if (!find_kernel(store, change, &standing)) {
        return WPK_ENOENT;
    }
    if (!standing.served) {
        return wpk_fail(diag, WPK_EEXIST, "the kernel is not the one that is served");
    }
    uint64_t before = wpk_rows_take_id(
        wpk_store_query(store,
                        "SELECT b.id FROM kernel b JOIN kernel k ON k.problem_id = b.problem_id"
                        " AND k.accuracy = b.accuracy WHERE k.id = ? AND b.served_at > 0 AND "
                        "b.served_at < k.served_at"
                        " AND b.revoked_at = 0 ORDER BY b.served_at DESC LIMIT 1",
                        "i", (int64_t)change->kernel_id));
    if (before == 0) {
        return wpk_fail(diag, WPK_EEXIST,
                        "there is none before it; the kernel's history lists those that there are");
    }
    serve_only(store, change, change->accuracy, before);
    return end_change(store, change);
}

uint32_t wpk_history_lose_key(struct wpk_store *store, struct wpk_buf *ids)
{
    uint32_t count = 0;
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT id FROM kernel WHERE signature <> '' AND served = 1 ORDER BY id", "");
    while (wpk_rows_next(rows)) {
        wpk_buf_printf(ids, "%sk%lld", count++ > 0 ? " " : "", (long long)wpk_rows_int(rows, 0));
    }
    wpk_store_run(store,
                  "UPDATE job_op SET kernel_id = NULL WHERE kernel_id IN"
                  " (SELECT id FROM kernel WHERE signature <> '')",
                  "");
    wpk_store_run(store,
                  "UPDATE search SET kernel_id = NULL WHERE kernel_id IN"
                  " (SELECT id FROM kernel WHERE signature <> '')",
                  "");
    wpk_store_run(store, "UPDATE kernel SET served = 0, pinned = 0 WHERE signature <> ''", "");
    return count;
}
