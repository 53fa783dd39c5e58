/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of artifacts: which exist, their bytes, and which are pruned. A file is removed after its
 * row, because a file without a row is harmless and a row without its file is not. */
#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"

#include <stdio.h>

#define HOUR_NS INT64_C(3600000000000)
#define USED_NS (HOUR_NS / 4) /* less often it is not written: well within what pruning spares */

bool wpk_history_has_artifact(struct wpk_store *store, const char *sha256)
{
    return wpk_rows_take(
        wpk_store_query(store, "SELECT 1 FROM artifact WHERE sha256 = ?", "t", sha256), "");
}

static void add_bytes(struct wpk_store *store, int64_t bytes)
{
    wpk_store_run(store, "UPDATE installation SET artifact_bytes = artifact_bytes + ?", "i", bytes);
}

void wpk_history_put_artifact(struct wpk_store *store, const char *sha256, size_t size)
{
    int made = wpk_store_run(store,
                             "INSERT INTO artifact (sha256, size, used_at, kept, created_at, epoch)"
                             " VALUES (?1, ?2, ?3, 0, ?3, ?4) ON CONFLICT DO NOTHING",
                             "tiii", sha256, (int64_t)size, (int64_t)wpk_store_wall_ns(store),
                             wpk_store_epoch(store));
    if (made > 0) {
        add_bytes(store, (int64_t)size);
    } else {
        wpk_history_use_artifact(store, sha256);
    }
}

void wpk_history_spend_artifact(struct wpk_store *store, const char *sha256)
{
    wpk_store_run(store, "UPDATE artifact SET used_at = 0 WHERE sha256 = ?", "t", sha256);
}

void wpk_history_lose_artifact(struct wpk_store *store, const char *sha256)
{
    int64_t size;
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT size FROM artifact WHERE sha256 = ?", "t", sha256);
    if (wpk_rows_take(rows, "i", &size)) {
        wpk_store_run(store, "DELETE FROM artifact WHERE sha256 = ?", "t", sha256);
        add_bytes(store, -size);
    }
}

void wpk_history_use_artifact(struct wpk_store *store, const char *sha256)
{
    wpk_store_run(store, "UPDATE artifact SET used_at = ?1 WHERE sha256 = ?2 AND used_at < ?1 - ?3",
                  "iti", (int64_t)wpk_store_wall_ns(store), sha256, USED_NS);
}

void wpk_history_keep_artifact(struct wpk_store *store, const char *sha256, int more)
{
    if (sha256[0] != '\0') {
        wpk_store_run(store, "UPDATE artifact SET kept = MAX(kept + ?, 0) WHERE sha256 = ?", "it",
                      (int64_t)more, sha256);
    }
}

uint64_t wpk_history_artifact_bytes(struct wpk_store *store)
{
    return wpk_rows_take_id(wpk_store_query(store, "SELECT artifact_bytes FROM installation", ""));
}

/* Artifacts that were made or used within the hour stay: a search may be about to keep them. */
uint32_t wpk_history_prune_artifacts(struct wpk_store *store, uint64_t bytes_wanted,
                                     char (*pruned)[WPK_ID_MAX], uint32_t max)
{
    uint32_t count = 0;
    int64_t freed = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT sha256, size FROM artifact a WHERE kept = 0 AND used_at < ? AND NOT EXISTS"
        " (SELECT 1 FROM kernel k WHERE k.artifact_sha256 = a.sha256) ORDER BY used_at LIMIT ?",
        "ii", (int64_t)wpk_store_wall_ns(store) - HOUR_NS, (int64_t)max);
    while ((uint64_t)freed < bytes_wanted && count < max && wpk_rows_next(rows)) {
        snprintf(pruned[count++], WPK_ID_MAX, "%s", wpk_rows_text(rows, 0));
        freed += wpk_rows_int(rows, 1);
    }
    wpk_rows_close(rows);
    for (uint32_t i = 0; i < count; i++) {
        wpk_store_run(store, "DELETE FROM artifact WHERE sha256 = ?", "t", pruned[i]);
    }
    if (count > 0) {
        add_bytes(store, -freed);
    }
    return count;
}

/* ---- files without a row */

struct sweep {
    struct wpk_store *store;
    const char *data_dir;
    uint32_t count;
};

/* Remove a file without a row. If the store cannot be read, a missing row proves nothing. */
static void remove_stray(void *user, const char *sha256)
{
    struct sweep *sweep = user;
    if (wpk_store_status(sweep->store) == WPK_OK &&
        !wpk_history_has_artifact(sweep->store, sha256) &&
        wpk_store_status(sweep->store) == WPK_OK) {
        wpk_artifact_remove(sweep->data_dir, sha256);
        sweep->count++;
    }
}

uint32_t wpk_history_sweep_artifacts(struct wpk_store *store, const char *data_dir)
{
    struct sweep sweep = {.store = store, .data_dir = data_dir};
    wpk_artifact_sweep(data_dir);
    wpk_artifact_each(data_dir, remove_stray, &sweep);
    return sweep.count;
}
