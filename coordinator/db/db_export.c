/* SPDX-License-Identifier: Apache-2.0 */
/* An export is a copy of the history as of one moment, whatever wpkd writes meanwhile, without what
 * belongs to this installation alone. It gets its name when it is whole. */
#include "common/clock.h"
#include "common/fs.h"
#include "coordinator/db/db_command.h"
#include "coordinator/db/db_file.h"
#include "coordinator/store/artifact.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* db_export.sql, embedded by the build. */
extern const unsigned char wpk_db_export_sql[];
extern const size_t wpk_db_export_sql_size;

/* An artifact that is gone or damaged is left out: who imports builds it again. */
static void put_artifacts(struct wpk_store *store, const char *data_dir)
{
    struct wpk_rows *rows = wpk_store_query(store, "SELECT sha256 FROM artifact", "");
    while (wpk_rows_next(rows)) {
        struct wpk_buf bytes = {0};
        const char *sha256 = wpk_rows_text(rows, 0);
        if (wpk_artifact_get(data_dir, sha256, &bytes, NULL) == WPK_OK) {
            wpk_store_run(store, "INSERT INTO artifact_bytes VALUES (?, ?)", "tb", sha256, &bytes);
        }
        wpk_buf_fini(&bytes);
    }
}

static wpk_err strip(struct wpk_store *store, struct wpk_diag *diag)
{
    struct wpk_buf sql = {0};
    wpk_buf_append(&sql, wpk_db_export_sql, wpk_db_export_sql_size);
    wpk_buf_append_text(&sql, WPK_DB_ARTIFACT_TABLE);
    wpk_err err = wpk_buf_status(&sql);
    err = err == WPK_OK ? wpk_store_execute(store, wpk_buf_text(&sql), diag) : err;
    wpk_buf_fini(&sql);
    return err;
}

static void count(struct wpk_store *store, struct wpk_db_report *report)
{
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT (SELECT count(*) FROM problem), (SELECT count(*) FROM trial),"
                        " (SELECT count(*) FROM kernel), (SELECT count(*) FROM artifact_bytes)",
                        "");
    if (wpk_rows_next(rows)) {
        wpk_db_say(report, "problems", wpk_rows_int(rows, 0));
        wpk_db_say(report, "trials", wpk_rows_int(rows, 1));
        wpk_db_say(report, "kernels", wpk_rows_int(rows, 2));
        wpk_db_say(report, "artifacts", wpk_rows_int(rows, 3));
    }
    wpk_rows_close(rows);
}

static wpk_err complete(const char *path, const char *data_dir, struct wpk_db_report *report,
                        struct wpk_diag *diag)
{
    struct wpk_store *store = NULL;
    wpk_err err = wpk_store_attach(path, wpk_clock_system(), false, &store, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = strip(store, diag);
    if (err == WPK_OK) {
        wpk_store_begin(store);
        put_artifacts(store, data_dir);
        count(store, report);
        err = wpk_store_commit(store, diag);
    }
    wpk_store_close(store);
    return err == WPK_OK ? wpk_db_seal(path, diag) : err;
}

static wpk_err write_export(const char *path, const char *data_dir, struct wpk_db_report *report,
                            struct wpk_diag *diag)
{
    struct wpk_store *store = NULL;
    wpk_err err = wpk_store_open_reader(data_dir, wpk_clock_system(), &store, diag);
    if (err == WPK_OK) {
        err = wpk_store_back_up(store, path, false, diag);
        wpk_store_close(store);
    }
    err = err == WPK_OK ? complete(path, data_dir, report, diag) : err;
    if (err == WPK_ENOSPC) {
        *diag = (struct wpk_diag){0};
        wpk_diag_set(diag, "cannot write %s: %s; make room, or name another file", path,
                     wpk_err_text(err));
    }
    return err;
}

wpk_err wpk_db_export(const struct wpk_db_options *options, struct wpk_db_report *report,
                      struct wpk_diag *diag)
{
    char partial[4096];
    bool stream = wpk_output_path_is_stream(options->file);
    wpk_err err = wpk_output_path_check(options->file, diag);
    if (err != WPK_OK) {
        return err;
    }
    snprintf(partial, sizeof partial, "%s.partial", options->file);
    if (stream) {
        err = wpk_db_make_temporary(partial, diag);
    }
    err = err == WPK_OK ? write_export(partial, options->data_dir, report, diag) : err;
    if (err == WPK_OK) {
        err = stream ? wpk_db_copy_stream(partial, options->file, diag)
                     : wpk_fs_rename(partial, options->file, diag);
    }
    if (err != WPK_OK || stream) {
        (void)unlink(partial);
    }
    return err;
}
