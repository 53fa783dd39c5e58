/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "coordinator/db/db_command.h"
#include "coordinator/db/db_file.h"
#include "coordinator/store/artifact.h"
#include "schema/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct export
{
    const char *data_dir;
    struct wpk_store *store;
    FILE *out;
    struct wpk_crypto_hash hash; /* of what was written */
    wpk_err err;                 /* the first failure; what follows does nothing */
    int64_t artifacts, problems, trials, kernels;
};

static void put_bytes(struct export *e, const void *bytes, size_t size)
{
    if (e->err == WPK_OK && fwrite(bytes, 1, size, e->out) != size) {
        e->err = wpk_fs_err(errno);
    }
    wpk_crypto_hash_add(&e->hash, bytes, size);
}

/* Ends the writer. */
static void put_line(struct export *e, struct wpk_json_writer *w)
{
    struct wpk_buf line = {.size_max = WPK_DB_LINE_MAX};
    wpk_err err = wpk_json_print(w, false, &line);
    wpk_buf_append_byte(&line, '\n');
    err = err == WPK_OK ? wpk_buf_status(&line) : err;
    if (err == WPK_OK) {
        put_bytes(e, line.data, line.size);
    } else if (e->err == WPK_OK) {
        e->err = err;
    }
    wpk_json_writer_free(w);
    wpk_buf_fini(&line);
}

static void end_line(struct export *e, struct wpk_json_writer *w)
{
    wpk_json_end(w);
    put_line(e, w);
}

static struct wpk_json_writer *begin_line(const char *kind)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_object(w, kind);
    return w;
}

/* A member of `w`, from the next column of `rows`. */
#define PUT_t(name) wpk_json_put_text(w, name, wpk_rows_text(rows, column++));
#define PUT_u(name) wpk_json_put_u64(w, name, (uint64_t)wpk_rows_int(rows, column++));
#define PUT_i(name) wpk_json_put_int(w, name, wpk_rows_int(rows, column++));
#define PUT_r(name) wpk_json_put_real(w, name, wpk_rows_real(rows, column++));
#define PUT(name, type, limit) PUT_##type(#name)

#define OF_SEARCH(name, type, limit) ", s." #name
#define OF_KERNEL(name, type, limit) ", k." #name
#define SEARCH_AND_KERNEL WPK_DB_SEARCH_LIST(OF_SEARCH) WPK_DB_KERNEL_LIST(OF_KERNEL)

static void put_artifacts(struct export *e)
{
    struct wpk_rows *rows =
        wpk_store_query(e->store, "SELECT sha256 FROM artifact ORDER BY sha256", "");
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        struct wpk_buf bytes = {0};
        const char *sha256 = wpk_rows_text(rows, 0);
        /* One that is gone or damaged is left out: who imports builds it again. */
        if (wpk_artifact_get(e->data_dir, sha256, &bytes, NULL) == WPK_OK) {
            struct wpk_json_writer *w = begin_line("artifact");
            wpk_json_put_text(w, "sha256", sha256);
            wpk_json_put_u64(w, "size", bytes.size);
            end_line(e, w);
            put_bytes(e, bytes.data, bytes.size);
            put_bytes(e, "\n", 1);
            e->artifacts++;
        }
        wpk_buf_fini(&bytes);
    }
    wpk_rows_close(rows);
}

static void put_measurements(struct export *e, struct wpk_json_writer *w, int64_t trial)
{
    struct wpk_rows *rows = wpk_store_query(e->store,
                                            "SELECT number" WPK_DB_MEASUREMENT_COLUMNS
                                            " FROM measurement WHERE trial_id = ? ORDER BY number",
                                            "i", trial);
    wpk_json_begin_array(w, "measurements");
    while (wpk_rows_next(rows)) {
        int column = 1;
        wpk_json_begin_object(w, NULL);
        WPK_DB_MEASUREMENT_LIST(PUT)
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_rows_close(rows);
}

/* Those with a result that says something of the candidate. */
static void put_trials(struct export *e, int64_t problem)
{
    struct wpk_rows *rows = wpk_store_query(
        e->store,
        "SELECT id" WPK_DB_TRIAL_COLUMNS
        " FROM trial WHERE problem_id = ? AND outcome NOT IN ('', 'abandoned') ORDER BY id",
        "i", problem);
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        int column = 1;
        struct wpk_json_writer *w = begin_line("trial");
        WPK_DB_TRIAL_LIST(PUT)
        put_measurements(e, w, wpk_rows_int(rows, 0));
        end_line(e, w);
        e->trials++;
    }
    wpk_rows_close(rows);
}

static void put_kernels(struct export *e, int64_t problem)
{
    struct wpk_rows *rows = wpk_store_query(
        e->store,
        "SELECT k.id" SEARCH_AND_KERNEL " FROM kernel k JOIN search s ON s.id = k.search_id"
        " WHERE k.problem_id = ? AND (k.served = 1 OR k.provider = '" WPK_PLAIN_PROVIDER
        "') AND k.revoked_at = 0 ORDER BY k.served DESC, k.id",
        "i", problem);
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        int column = 1;
        struct wpk_json_writer *w = begin_line("kernel");
        wpk_json_begin_object(w, "search");
        WPK_DB_SEARCH_LIST(PUT)
        wpk_json_end(w);
        WPK_DB_KERNEL_LIST(PUT)
        end_line(e, w);
        e->kernels++;
    }
    wpk_rows_close(rows);
}

static void put_problems(struct export *e)
{
    struct wpk_rows *rows = wpk_store_query(
        e->store, "SELECT id" WPK_DB_PROBLEM_COLUMNS " FROM problem ORDER BY id", "");
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        int column = 1;
        struct wpk_json_writer *w = begin_line("problem");
        WPK_DB_PROBLEM_LIST(PUT)
        end_line(e, w);
        e->problems++;
        put_trials(e, wpk_rows_int(rows, 0));
        put_kernels(e, wpk_rows_int(rows, 0));
    }
    wpk_rows_close(rows);
}

static void put_hints(struct export *e)
{
    struct wpk_rows *rows =
        wpk_store_query(e->store, "SELECT 0" WPK_DB_HINT_COLUMNS " FROM hint ORDER BY 2, 3, 4", "");
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        int column = 1;
        struct wpk_json_writer *w = begin_line("hint");
        WPK_DB_HINT_LIST(PUT)
        end_line(e, w);
    }
    wpk_rows_close(rows);
}

static void put_all(struct export *e)
{
    char created[WPK_CLOCK_TEXT_SIZE];
    char sha256[WPK_SHA256_HEX_SIZE];
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_crypto_hash_init(&e->hash);
    wpk_clock_format(wpk_store_wall_ns(e->store), created);
    wpk_json_put_int(w, "wpk_export", WPK_EXPORT_VERSION);
    wpk_json_put_text(w, "program", WPK_VERSION);
    wpk_json_put_text(w, "created", created);
    put_line(e, w);
    put_artifacts(e);
    put_problems(e);
    put_hints(e);
    struct wpk_crypto_hash whole = e->hash;
    wpk_crypto_hash_finish_hex(&whole, sha256);
    w = begin_line("end");
    wpk_json_put_text(w, "sha256", sha256);
    end_line(e, w);
}

/* As of one moment, whatever wpkd writes meanwhile. */
static wpk_err export_snapshot(struct export *e, struct wpk_diag *diag)
{
    wpk_err err = wpk_store_execute(e->store, "BEGIN", diag);
    if (err != WPK_OK) {
        return err;
    }
    put_all(e);
    err = wpk_store_take_status(e->store, diag);
    wpk_err ended = wpk_store_execute(e->store, "COMMIT", diag);
    if (e->err != WPK_OK) {
        wpk_diag_set(diag, "cannot write: %s; make room, or name another file",
                     wpk_err_text(e->err));
    }
    return e->err != WPK_OK ? e->err : err != WPK_OK ? err : ended;
}

static wpk_err write_file(struct export *e, const char *path, struct wpk_diag *diag)
{
    char partial[4096];
    bool stream = wpk_fs_is_stream(path);
    snprintf(partial, sizeof partial, "%s%s", path, stream ? "" : ".partial");
    e->out = fopen(partial, stream ? "abe" : "wbe");
    if (e->out == NULL) {
        wpk_diag_set(diag, "%s: %s%s", partial, strerror(errno), wpk_fs_advice(errno));
        return errno == ENOENT ? WPK_EINVAL : wpk_fs_err(errno);
    }
    wpk_err err = export_snapshot(e, diag);
    bool written = fflush(e->out) == 0 && (stream || fsync(fileno(e->out)) == 0);
    written = fclose(e->out) == 0 && written;
    if (err == WPK_OK && !written) {
        wpk_diag_set(diag, "%s: %s%s", path, strerror(errno), wpk_fs_advice(errno));
        err = wpk_fs_err(errno);
    }
    if (err == WPK_OK && !stream) {
        err = wpk_fs_rename(partial, path, diag);
    }
    if (err != WPK_OK && !stream) {
        (void)unlink(partial);
    }
    return err;
}

wpk_err wpk_db_export(const struct wpk_db_options *options, struct wpk_db_report *report,
                      struct wpk_diag *diag)
{
    struct export e = {.data_dir = options->data_dir, .out = stdout};
    wpk_err err = wpk_output_path_check(options->file, diag);
    if (err == WPK_OK) {
        err = wpk_store_open_reader(options->data_dir, wpk_clock_system(), &e.store, diag);
    }
    if (err != WPK_OK) {
        return err;
    }
    bool piped = strcmp(options->file, "-") == 0;
    err = piped ? export_snapshot(&e, diag) : write_file(&e, options->file, diag);
    if (err == WPK_OK && piped && fflush(stdout) != 0) {
        err = wpk_fs_err(errno);
    }
    wpk_store_close(e.store);
    if (err == WPK_OK) {
        wpk_db_say(report, "problems", e.problems);
        wpk_db_say(report, "trials", e.trials);
        wpk_db_say(report, "kernels", e.kernels);
        wpk_db_say(report, "artifacts", e.artifacts);
    }
    return err;
}
