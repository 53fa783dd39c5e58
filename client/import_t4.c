/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl import --format t4: trials of another tuner or device become hints of a history. They are
 * written as an export, which `wpkd --db import` reads from its standard input. */
#include "client/t4.h"

#include "client/job_file.h"
#include "common/clock.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "common/json.h"
#include "ir/canonical/fingerprint.h"
#include "ir/notation/definition.h"
#include "schema/record.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

/* coordinator/db/db_file.h describes the lines. */

struct lines {
    const char *fingerprint, *layouts;
    struct wpk_buf text;
};

/* Append the writer's document as a line; ends the writer. */
static wpk_err put_line(struct lines *lines, struct wpk_json_writer *w)
{
    wpk_err err = wpk_json_print(w, false, &lines->text);
    wpk_buf_append_byte(&lines->text, '\n');
    wpk_json_writer_free(w);
    return err == WPK_OK ? wpk_buf_status(&lines->text) : err;
}

static wpk_err take(void *user, const char *candidate, double time_ns)
{
    struct lines *lines = user;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_object(w, "hint");
    wpk_json_put_text(w, "fingerprint", lines->fingerprint);
    wpk_json_put_text(w, "layouts", lines->layouts);
    wpk_json_put_text(w, "candidate", candidate);
    wpk_json_put_real(w, "time_ns", time_ns);
    wpk_json_end(w);
    return put_line(lines, w);
}

static wpk_err begin(struct lines *lines)
{
    char created[WPK_CLOCK_TEXT_SIZE];
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_clock_format(wpk_clock_wall_ns(wpk_clock_system()), created);
    wpk_json_put_int(w, "wpk_export", WPK_EXPORT_VERSION);
    wpk_json_put_text(w, "program", WPK_VERSION);
    wpk_json_put_text(w, "created", created);
    return put_line(lines, w);
}

static wpk_err end(struct lines *lines)
{
    char sha256[WPK_SHA256_HEX_SIZE];
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_crypto_sha256_hex(lines->text.data, lines->text.size, sha256);
    wpk_json_begin_object(w, "end");
    wpk_json_put_text(w, "sha256", sha256);
    wpk_json_end(w);
    return put_line(lines, w);
}

/* Find the operator of this name in the job; NULL: its only one. */
static wpk_err find_op(const struct wpk_job *job, const char *name, int *out, struct wpk_diag *diag)
{
    for (int i = 0; i < job->op_count; i++) {
        if (name == NULL ? job->op_count == 1 : strcmp(job->ops[i].name, name) == 0) {
            *out = i;
            return WPK_OK;
        }
    }
    wpk_diag_set(diag,
                 name == NULL ? "the job has several operators; --op names one"
                              : "the job has no operator %s",
                 name);
    return WPK_EINVAL;
}

/* Write the hints of `text`, which is of this operator, as an export. */
static wpk_err convert(const struct wpk_buf *text, const struct wpk_job *job, int op,
                       struct lines *lines, struct wpk_diag *diag)
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
        lines->fingerprint = fingerprint.exact;
        lines->layouts = options.layouts;
        err = begin(lines);
    }
    err = err == WPK_OK ? wpk_t4_decode(text, &space, take, lines, diag) : err;
    err = err == WPK_OK ? end(lines) : err;
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
    struct wpk_job job = {0};
    struct lines lines = {0};
    int index = 0;
    wpk_err err = wpk_job_file_read(job_path, &job, diag);
    err = err == WPK_OK ? find_op(&job, op, &index, diag) : err;
    err = err == WPK_OK ? wpk_fs_read(path, WPK_T4_SIZE_MAX, &text, diag) : err;
    if (err == WPK_OK) {
        err = convert(&text, &job, index, &lines, diag);
        if (err != WPK_OK && diag->file[0] == '\0') {
            snprintf(diag->file, sizeof(diag->file), "%s", path);
        }
    }
    err = err == WPK_OK ? feed(&lines.text) : err;
    wpk_buf_fini(&lines.text);
    wpk_buf_fini(&text);
    wpk_job_fini(&job);
    return err == WPK_EPARSE || err == WPK_ERANGE || err == WPK_ENOENT ? WPK_EINVAL : err;
}
