/* SPDX-License-Identifier: Apache-2.0 */
#include "client/trial_list.h"

#include "client/job_file.h"
#include "common/format.h"
#include "common/fs.h"
#include "common/json.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/definition.h"
#include "schema/record.h"
#include "search/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VALUE_MAX ((size_t)1024) /* bytes of a gene's value, and of other texts */
#define RUNTIMES_MAX 1024

/* The format's word for an outcome. */
static const char *invalidity(const struct wpk_api_trial *trial)
{
    static const struct {
        const char *outcome, *word;
    } words[] = {{"build_error", "compile"},     {"build_timeout", "timeout"},
                 {"run_timeout", "timeout"},     {"run_crash", "runtime"},
                 {"out_of_memory", "runtime"},   {"wrong_result", "correctness"},
                 {"unsupported", "constraints"}, {"abandoned", "runtime"}};
    if (strcmp(trial->outcome, "ok") == 0) {
        return trial->censored ? "timeout" : "correct";
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(trial->outcome, words[i].outcome) == 0) {
            return words[i].word;
        }
    }
    return "runtime";
}

static void put_configuration(const char *candidate, struct wpk_json_writer *w)
{
    wpk_json_begin_object(w, "configuration");
    for (const char *at = candidate; *at != '\0';) {
        char name[256], value[1024];
        size_t end = strcspn(at, " "), equals = strcspn(at, "=");
        if (equals < end) {
            snprintf(name, sizeof(name), "%.*s", (int)equals, at);
            snprintf(value, sizeof(value), "%.*s", (int)(end - equals - 1), at + equals + 1);
            wpk_json_put_text(w, name, value);
        }
        at += end + (at[end] == ' ');
    }
    wpk_json_end(w);
}

static void put_result(const struct wpk_api_trial *trial, struct wpk_json_writer *w)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "timestamp", trial->recorded);
    put_configuration(trial->candidate, w);
    wpk_json_begin_object(w, "times");
    wpk_json_begin_array(w, "runtimes");
    if (trial->median_ns > 0) {
        wpk_json_put_real(w, NULL, trial->median_ns / 1e6);
    }
    wpk_json_end(w);
    wpk_json_end(w);
    wpk_json_put_text(w, "invalidity", invalidity(trial));
    wpk_json_put_int(w, "correctness", strcmp(trial->outcome, "ok") == 0);
    wpk_json_begin_array(w, "measurements");
    if (trial->median_ns > 0) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", "time");
        wpk_json_put_real(w, "value", trial->median_ns / 1e6);
        wpk_json_put_text(w, "unit", "ms");
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_json_begin_array(w, "objectives");
    wpk_json_put_text(w, NULL, "time");
    wpk_json_end(w);
    wpk_json_end(w);
}

wpk_err wpk_t4_encode(const struct wpk_trial_list *list, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "schema_version", "1.0.0");
    wpk_json_begin_array(w, "results");
    for (int i = 0; i < list->count; i++) {
        if (list->trial[i].index >= 0 && strcmp(list->trial[i].outcome, "pending") != 0) {
            put_result(&list->trial[i], w);
        }
    }
    wpk_json_end(w);
    return wpk_json_finish(w, false, out);
}

/* ---- reading */

/* Genes in the order of the file, as wpk_candidate_encode() writes them. A document does not say of
 * which version of the space they are: those of another one do not fit. */
static void read_configuration(struct wpk_json_reader *r, const struct wpk_space *space,
                               struct wpk_buf *out)
{
    wpk_buf_append_text(out, wpk_space_version(space));
    wpk_json_enter(r, "configuration");
    while (wpk_json_next(r)) {
        wpk_buf_printf(out, " %s=", wpk_json_name(r));
        if (wpk_json_kind_of(r, NULL) == WPK_JSON_NUMBER) {
            wpk_buf_printf(
                out, "%lld",
                (long long)wpk_json_get_int(r, NULL, -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX));
        } else {
            wpk_buf_append_text(out, wpk_json_get_text(r, NULL, VALUE_MAX));
        }
    }
    wpk_json_leave(r);
}

/* The median of the runtimes, in ns; 0: there is none. */
static double read_time(struct wpk_json_reader *r)
{
    double times[RUNTIMES_MAX];
    int count = 0;
    wpk_json_enter(r, "times");
    wpk_json_enter_array(r, "runtimes");
    while (count < RUNTIMES_MAX && wpk_json_next(r)) {
        times[count++] = wpk_json_get_real(r, NULL, 1e-9, 1e9);
    }
    wpk_json_leave(r);
    wpk_json_leave(r);
    qsort(times, (size_t)count, sizeof(times[0]), wpk_real_compare);
    return count == 0 ? 0 : times[count / 2] * 1e6;
}

static wpk_err read_result(struct wpk_json_reader *r, const struct wpk_space *space,
                           wpk_err (*take)(void *user, const char *candidate, double time_ns),
                           void *user)
{
    struct wpk_buf candidate = {.size_max = WPK_CANDIDATE_TEXT_MAX};
    struct wpk_diag why = {0};
    bool correct = strcmp(wpk_json_get_text(r, "invalidity", VALUE_MAX), "correct") == 0;
    double time_ns = correct ? read_time(r) : 0;
    wpk_err err = WPK_OK;
    if (time_ns > 0 && wpk_json_status(r) == WPK_OK) {
        read_configuration(r, space, &candidate);
        err = wpk_buf_status(&candidate);
    }
    if (err == WPK_OK && candidate.size > 0 && wpk_json_status(r) == WPK_OK) {
        if (wpk_space_fits(space, wpk_buf_text(&candidate), NULL, &why) != WPK_OK) {
            wpk_json_fail(r, "configuration", WPK_EINVAL, "no candidate of this operator: %s",
                          why.text);
        } else {
            err = take(user, wpk_buf_text(&candidate), time_ns);
        }
    }
    wpk_buf_fini(&candidate);
    return err;
}

/* Call `take` with each configuration that was correct and has a time, as a candidate's text.
 *   errors  WPK_EINVAL another version, or a configuration that is no legal candidate of the space;
 *           WPK_EPARSE, WPK_ERANGE; with line, column and field in `diag`; those of `take` */
static wpk_err decode(const struct wpk_buf *text, const struct wpk_space *space,
                      wpk_err (*take)(void *user, const char *candidate, double time_ns),
                      void *user, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(wpk_buf_text(text), text->size, WPK_T4_SIZE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    const char *version = wpk_json_get_text(r, "schema_version", VALUE_MAX);
    if (wpk_json_status(r) == WPK_OK && strcmp(version, "1.0.0") != 0) {
        wpk_json_fail(r, "schema_version", WPK_EINVAL, "only T4 results of version 1.0.0 are read");
    }
    wpk_json_enter_array(r, "results");
    while (err == WPK_OK && wpk_json_next(r)) {
        err = read_result(r, space, take, user);
    }
    wpk_json_leave(r);
    err = err == WPK_OK ? wpk_json_status(r) : err;
    wpk_json_close(r);
    return err;
}

/* wpkctl import --format t4: trials of another tuner or device become hints of a history. They are
 * written as a document, which `wpkd --db import` reads from its standard input
 * (coordinator/db/db_import.c). */

struct hints {
    const char *fingerprint, *layouts;
    struct wpk_json_writer *json;
};

static wpk_err take(void *user, const char *candidate, double time_ns)
{
    const struct hints *hints = user;
    wpk_json_begin_object(hints->json, NULL);
    wpk_json_put_text(hints->json, "fingerprint", hints->fingerprint);
    wpk_json_put_text(hints->json, "layouts", hints->layouts);
    wpk_json_put_text(hints->json, "candidate", candidate);
    wpk_json_put_real(hints->json, "time_ns", time_ns);
    wpk_json_end(hints->json);
    return WPK_OK;
}

/* Write the hints of `text`, which is of this operator, as a document. */
static wpk_err convert(const struct wpk_buf *text, const struct wpk_job *job, int op,
                       struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_program program = {0}, canonical = {0};
    struct wpk_fingerprint fingerprint;
    struct wpk_space space = {0};
    struct wpk_space_options options = {.layouts = wpk_layouts_name(job->ops[op].layouts),
                                        .threads = job->threads,
                                        .back_ends = ~0U};
    wpk_err err = wpk_job_op_program(job, op, &program, diag);
    err = err == WPK_OK ? wpk_fingerprint(&program, &fingerprint) : err;
    err = err == WPK_OK ? wpk_program_canonical(&program, &canonical, NULL) : err;
    err = err == WPK_OK ? wpk_device_probe(WPK_CPU_FLAGS_ALL, &options.device) : err;
    err = err == WPK_OK ? wpk_space_derive(&canonical, &options, &space, diag) : err;
    if (err == WPK_OK) {
        struct hints hints = {fingerprint.exact, options.layouts, wpk_json_writer_new_object()};
        wpk_json_begin_array(hints.json, "hints");
        err = decode(text, &space, take, &hints, diag);
        wpk_json_end(hints.json);
        err = err == WPK_OK ? wpk_json_print(hints.json, false, out) : err;
        wpk_json_writer_free(hints.json);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&canonical);
    wpk_program_fini(&program);
    return err;
}

/* Make the text standard input. */
static wpk_err feed(const struct wpk_buf *text)
{
    int file = memfd_create("hints", MFD_CLOEXEC);
    bool written = file >= 0 && write(file, text->data, text->size) == (ssize_t)text->size &&
                   lseek(file, 0, SEEK_SET) == 0 && dup2(file, STDIN_FILENO) >= 0;
    return written ? WPK_OK : WPK_ESYSTEM;
}

wpk_err wpk_import_t4(const char *path, const char *job_path, const char *op, struct wpk_diag *diag)
{
    struct wpk_buf text = {.size_max = WPK_T4_SIZE_MAX + 1};
    struct wpk_buf document = {.size_max = WPK_HINTS_SIZE_MAX};
    struct wpk_job job = {0};
    int index = 0;
    wpk_err err = wpk_job_file_read(job_path, &job, diag);
    err = err == WPK_OK ? wpk_job_file_op(&job, op, &index, diag) : err;
    err = err == WPK_OK ? wpk_fs_read(path, WPK_T4_SIZE_MAX, &text, diag) : err;
    err = err == WPK_OK ? wpk_diag_in_file(diag, convert(&text, &job, index, &document, diag), path)
                        : err;
    err = err == WPK_OK ? feed(&document) : err;
    wpk_buf_fini(&document);
    wpk_buf_fini(&text);
    wpk_job_fini(&job);
    return err == WPK_EPARSE || err == WPK_ERANGE || err == WPK_ENOENT ? WPK_EINVAL : err;
}
