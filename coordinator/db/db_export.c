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

/* Columns of a row by name and type: t text, u 64 bits, i below 2^53, r real. */
struct column {
    const char *name;
    char type;
};

static void put_columns(struct wpk_json_writer *w, const struct wpk_rows *rows, int first,
                        const struct column *columns)
{
    for (int i = 0; columns[i].name != NULL; i++) {
        switch (columns[i].type) {
        case 't':
            wpk_json_put_text(w, columns[i].name, wpk_rows_text(rows, first + i));
            break;
        case 'u':
            wpk_json_put_u64(w, columns[i].name, (uint64_t)wpk_rows_int(rows, first + i));
            break;
        case 'i':
            wpk_json_put_int(w, columns[i].name, wpk_rows_int(rows, first + i));
            break;
        default:
            wpk_json_put_real(w, columns[i].name, wpk_rows_real(rows, first + i));
        }
    }
}

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
    static const struct column columns[] = {
        {"kind", 't'},         {"worker", 't'},      {"instance", 't'},
        {"median_ns", 'i'},    {"min_ns", 'i'},      {"mad_ns", 'i'},
        {"repeat_count", 'i'}, {"censored", 'i'},    {"anchor_ns", 'i'},
        {"anchor_ratio", 'r'}, {"anchor", 't'},      {"samples_ns", 't'},
        {"counters", 't'},     {"measured_at", 'u'}, {NULL, 0}};
    struct wpk_rows *rows = wpk_store_query(
        e->store,
        "SELECT kind, worker, instance, median_ns, min_ns, mad_ns, repeat_count, censored,"
        " anchor_ns, anchor_ratio, anchor, samples_ns, counters, measured_at FROM measurement "
        "WHERE trial_id = ?"
        " ORDER BY number",
        "i", trial);
    wpk_json_begin_array(w, "measurements");
    while (wpk_rows_next(rows)) {
        wpk_json_begin_object(w, NULL);
        put_columns(w, rows, 0, columns);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_rows_close(rows);
}

/* Those with a result that says something of the candidate. */
static void put_trials(struct export *e, int64_t problem)
{
    static const struct column columns[] = {{"provider", 't'},        {"candidate", 't'},
                                            {"outcome", 't'},         {"log", 't'},
                                            {"detail", 't'},          {"schedule_sha256", 't'},
                                            {"artifact_sha256", 't'}, {"error_max", 'r'},
                                            {"error_tolerance", 'r'}, {"of_rms", 'r'},
                                            {"times_direct", 'r'},    {"constants_bytes", 'i'},
                                            {"unseen", 't'},          {"recipe", 't'},
                                            {"build_ns", 'u'},        {"verify_ns", 'u'},
                                            {"recorded_at", 'u'},     {NULL, 0}};
    struct wpk_rows *rows = wpk_store_query(
        e->store,
        "SELECT id, provider, candidate, outcome, log, detail, schedule_sha256, artifact_sha256,"
        " error_max, error_tolerance, of_rms, times_direct, constants_bytes, unseen, recipe,"
        " build_ns, verify_ns, recorded_at FROM trial"
        " WHERE problem_id = ? AND outcome NOT IN ('', 'abandoned') ORDER BY id",
        "i", problem);
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        struct wpk_json_writer *w = begin_line("trial");
        put_columns(w, rows, 1, columns);
        put_measurements(e, w, wpk_rows_int(rows, 0));
        end_line(e, w);
        e->trials++;
    }
    wpk_rows_close(rows);
}

static void put_kernels(struct export *e, int64_t problem)
{
    static const struct column search_columns[] = {
        {"strategy", 't'},      {"parameters", 't'}, {"seed", 't'}, {"providers", 't'},
        {"space_version", 't'}, {"accuracy", 't'},   {NULL, 0}};
    static const struct column columns[] = {
        {"provider", 't'},  {"artifact_sha256", 't'}, {"times_direct", 'r'},
        {"median_ns", 'u'}, {"verified_by", 't'},     {"document", 't'},
        {"manifest", 't'},  {"created_at", 'u'},      {NULL, 0}};
    struct wpk_rows *rows = wpk_store_query(
        e->store,
        "SELECT s.strategy, s.parameters, s.seed, s.providers, s.space_version, s.accuracy,"
        " k.provider, k.artifact_sha256, k.times_direct, k.median_ns, k.verified_by, k.document, "
        "k.manifest, k.created_at"
        " FROM kernel k JOIN search s ON s.id = k.search_id"
        " WHERE k.problem_id = ? AND (k.served = 1 OR k.provider = '" WPK_PLAIN_PROVIDER
        "') AND k.revoked_at = 0 ORDER BY k.served DESC, k.id",
        "i", problem);
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        struct wpk_json_writer *w = begin_line("kernel");
        wpk_json_begin_object(w, "search");
        put_columns(w, rows, 0, search_columns);
        wpk_json_end(w);
        put_columns(w, rows, 6, columns);
        end_line(e, w);
        e->kernels++;
    }
    wpk_rows_close(rows);
}

static void put_problems(struct export *e)
{
    static const struct column columns[] = {
        {"fingerprint", 't'}, {"layouts", 't'},    {"device_class", 't'},
        {"environment", 't'}, {"policy", 't'},     {"op", 't'},
        {"flops", 'r'},       {"created_at", 'u'}, {NULL, 0}};
    struct wpk_rows *rows = wpk_store_query(
        e->store,
        "SELECT id, fingerprint, layouts, device_class, environment, policy, op, flops,"
        " created_at FROM problem ORDER BY id",
        "");
    while (e->err == WPK_OK && wpk_rows_next(rows)) {
        struct wpk_json_writer *w = begin_line("problem");
        put_columns(w, rows, 1, columns);
        end_line(e, w);
        e->problems++;
        put_trials(e, wpk_rows_int(rows, 0));
        put_kernels(e, wpk_rows_int(rows, 0));
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
    wpk_json_put_int(w, "wpk_export", WPK_DB_FILE_VERSION);
    wpk_json_put_text(w, "program", WPK_VERSION);
    wpk_json_put_text(w, "created", created);
    put_line(e, w);
    put_artifacts(e);
    put_problems(e);
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
    snprintf(partial, sizeof partial, "%s.partial", path);
    e->out = fopen(partial, "wbe");
    if (e->out == NULL) {
        wpk_diag_set(diag, "%s: %s%s", partial, strerror(errno), wpk_fs_advice(errno));
        return errno == ENOENT ? WPK_EINVAL : wpk_fs_err(errno);
    }
    wpk_err err = export_snapshot(e, diag);
    bool written = fflush(e->out) == 0 && fsync(fileno(e->out)) == 0;
    written = fclose(e->out) == 0 && written;
    if (err == WPK_OK && !written) {
        wpk_diag_set(diag, "%s: %s%s", path, strerror(errno), wpk_fs_advice(errno));
        err = wpk_fs_err(errno);
    }
    if (err == WPK_OK) {
        err = wpk_fs_rename(partial, path, diag);
    }
    if (err != WPK_OK) {
        (void)unlink(partial);
    }
    return err;
}

wpk_err wpk_db_export(const struct wpk_db_options *options, struct wpk_db_report *report,
                      struct wpk_diag *diag)
{
    struct export e = {.data_dir = options->data_dir, .out = stdout};
    wpk_err err = wpk_store_open_reader(options->data_dir, wpk_clock_system(), &e.store, diag);
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
