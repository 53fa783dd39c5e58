/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/store_migrate.h"

#include "common/buf.h"
#include "common/log.h"

#include <stdio.h>

#define VERSION_MIN 2 /* the oldest that is migrated */

/* schema/, embedded by the build. */
extern const unsigned char wpk_schema_sql[];
extern const size_t wpk_schema_sql_size;
extern const unsigned char wpk_schema_2_to_3_sql[];
extern const size_t wpk_schema_2_to_3_sql_size;

static wpk_err execute_embedded(struct wpk_store *store, const unsigned char *sql, size_t size,
                                struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_buf_append(&text, sql, size);
    wpk_err err = wpk_buf_status(&text);
    err = err == WPK_OK ? wpk_store_execute(store, text.data, diag) : err;
    wpk_buf_fini(&text);
    return err;
}

static wpk_err create_tables(struct wpk_store *store, struct wpk_diag *diag)
{
    char text[256];
    snprintf(text, sizeof text,
             "INSERT INTO installation (id, epoch, created_at, artifact_bytes)"
             " VALUES (1, 0, %lld, 0);"
             "PRAGMA user_version = %d; COMMIT",
             (long long)wpk_store_wall_ns(store), WPK_STORE_VERSION);
    wpk_err err = wpk_store_execute(store, "BEGIN IMMEDIATE", diag);
    if (err == WPK_OK) {
        err = execute_embedded(store, wpk_schema_sql, wpk_schema_sql_size, diag);
    }
    return err == WPK_OK ? wpk_store_execute(store, text, diag) : err;
}

/* Run `format` for each name that the query gives out, which takes the place of its '@'s. */
static wpk_err execute_each(struct wpk_store *store, const char *names, const char *format,
                            struct wpk_diag *diag)
{
    struct wpk_buf sql = {0};
    struct wpk_rows *rows = wpk_store_query(store, names, "");
    while (wpk_rows_next(rows)) {
        for (const char *at = format; *at != '\0'; at++) {
            if (*at == '@') {
                wpk_buf_append_text(&sql, wpk_rows_text(rows, 0));
            } else {
                wpk_buf_append_byte(&sql, *at);
            }
        }
    }
    wpk_rows_close(rows);
    wpk_err err = wpk_store_take_status(store, diag);
    err = err == WPK_OK ? wpk_buf_status(&sql) : err;
    err = err == WPK_OK ? wpk_store_execute(store, wpk_buf_text(&sql), diag) : err;
    wpk_buf_fini(&sql);
    return err;
}

/* Set the tables aside, make the new ones, and fill them from the old. */
static wpk_err rebuild_tables(struct wpk_store *store, struct wpk_diag *diag)
{
    wpk_err err = execute_each(
        store, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL",
        "DROP INDEX @;", diag);
    if (err == WPK_OK) {
        err = execute_each(store, "SELECT name FROM sqlite_schema WHERE type = 'table'",
                           "ALTER TABLE @ RENAME TO old_@;", diag);
    }
    if (err == WPK_OK) {
        err = execute_embedded(store, wpk_schema_sql, wpk_schema_sql_size, diag);
    }
    if (err == WPK_OK) {
        err = execute_embedded(store, wpk_schema_2_to_3_sql, wpk_schema_2_to_3_sql_size, diag);
    }
    return err == WPK_OK ? execute_each(store,
                                        "SELECT name FROM sqlite_schema WHERE type = 'table'"
                                        " AND substr(name, 1, 4) = 'old_'",
                                        "DROP TABLE @;", diag)
                         : err;
}

/* Names of tables are taken as they are: what refers to a table goes on naming it. */
static wpk_err migrate_from_2(struct wpk_store *store, struct wpk_diag *diag)
{
    wpk_err err = wpk_store_execute(store,
                                    "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON;"
                                    "BEGIN IMMEDIATE",
                                    diag);
    err = err == WPK_OK ? rebuild_tables(store, diag) : err;
    err = err == WPK_OK ? wpk_store_execute(store, "PRAGMA user_version = 3; COMMIT", diag) : err;
    if (err != WPK_OK) {
        return err; /* and what was begun is rolled back */
    }
    return wpk_store_execute(store, "PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ON",
                             diag);
}

wpk_err wpk_store_migrate(struct wpk_store *store, const char *path, int64_t version,
                          struct wpk_diag *diag)
{
    if (version == WPK_STORE_VERSION) {
        return WPK_OK;
    }
    if (version == 0) {
        return create_tables(store, diag);
    }
    if (version > WPK_STORE_VERSION) {
        wpk_diag_set(diag, "%s is of version %lld, written by a newer wpkd; this one knows %d",
                     path, (long long)version, WPK_STORE_VERSION);
        return WPK_EMISMATCH;
    }
    if (version < VERSION_MIN) {
        wpk_diag_set(diag, "%s is of version %lld; this wpkd migrates from version %d on", path,
                     (long long)version, VERSION_MIN);
        return WPK_EMISMATCH;
    }
    char backup_path[4096];
    snprintf(backup_path, sizeof backup_path, "%s.version%lld", path, (long long)version);
    wpk_log(WPK_LOG_INFO, "migrating", "from=%lld to=%d backup=\"%s\"", (long long)version,
            WPK_STORE_VERSION, backup_path);
    wpk_err err = wpk_store_check(store, diag); /* lest damage is made worse */
    err = err == WPK_OK ? wpk_store_back_up(store, backup_path, diag) : err;
    return err == WPK_OK ? migrate_from_2(store, diag) : err;
}
