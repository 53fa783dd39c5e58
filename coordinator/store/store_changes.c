/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's session extension. It needs a declared primary key in each table, which schema.sql has;
 * the table `probe` has none, and is left out. */
#include "coordinator/store/store.h"

#define SQLITE_ENABLE_SESSION 1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <sqlite3.h>

/* A library without the extension is refused by wpk_changes_check(), not by the loader. */
#pragma weak sqlite3session_create
#pragma weak sqlite3session_attach
#pragma weak sqlite3session_isempty
#pragma weak sqlite3session_changeset
#pragma weak sqlite3session_delete
#pragma weak sqlite3changeset_apply
#pragma weak sqlite3changeset_op

wpk_err wpk_changes_check(struct wpk_diag *diag)
{
    return sqlite3_compileoption_used("ENABLE_SESSION") != 0 &&
                   sqlite3_compileoption_used("ENABLE_PREUPDATE_HOOK") != 0
               ? WPK_OK
               : wpk_fail(diag, WPK_EUNSUPPORTED,
                          "SQLite %s was built without the session extension, which a log needs",
                          sqlite3_libversion());
}

static void check(struct wpk_store *store, int code)
{
    struct wpk_diag diag = {0};
    if (code != SQLITE_OK) {
        wpk_diag_set(&diag, "recording changes: %s", sqlite3_errstr(code));
        wpk_store_fail(store, code == SQLITE_NOMEM ? WPK_ENOMEM : WPK_EIO, &diag);
    }
}

void wpk_changes_begin(struct wpk_store *store, struct sqlite3_session **out)
{
    int code = sqlite3session_create(wpk_store_database(store), "main", out);
    check(store, code == SQLITE_OK ? sqlite3session_attach(*out, NULL) : code);
}

bool wpk_changes_any(struct sqlite3_session *session)
{
    return session != NULL && sqlite3session_isempty(session) == 0;
}

void wpk_changes_take(struct wpk_store *store, struct sqlite3_session **session,
                      struct wpk_buf *out)
{
    void *changes = NULL;
    int size = 0;
    if (*session != NULL) {
        check(store, out != NULL ? sqlite3session_changeset(*session, &size, &changes) : SQLITE_OK);
        sqlite3session_delete(*session);
        *session = NULL;
    }
    if (size > 0) {
        wpk_buf_append(out, changes, (size_t)size);
    }
    sqlite3_free(changes);
}

/* An entry is for the very state that its writer had: every difference is a fault. */
static int on_conflict(void *user, int kind, sqlite3_changeset_iter *at)
{
    const char *table = "some table";
    int columns;
    int operation;
    if (kind != SQLITE_CHANGESET_FOREIGN_KEY) {
        (void)sqlite3changeset_op(at, &table, &columns, &operation, NULL);
    }
    wpk_diag_set(user, "an entry of the log does not fit the history here: a row of %s differs",
                 table);
    return SQLITE_CHANGESET_ABORT;
}

wpk_err wpk_changes_apply(struct wpk_store *store, const void *changes, size_t size,
                          struct wpk_diag *diag)
{
    struct wpk_diag why = {0};
    wpk_store_begin(store);
    if (wpk_store_status(store) == WPK_OK) {
        int code = sqlite3changeset_apply(wpk_store_database(store), (int)size,
                                          (void *)(uintptr_t)changes, NULL, on_conflict, &why);
        if (code == SQLITE_ABORT || code == SQLITE_CORRUPT || code == SQLITE_CONSTRAINT) {
            wpk_diag_set(&why, "an entry of the log is damaged"); /* unless there was a conflict */
            wpk_store_fail(store, WPK_ECORRUPT, &why);
        } else {
            check(store, code);
        }
    }
    return wpk_store_commit(store, diag);
}
