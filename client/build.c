/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl build: build, verify and time a schedule that was edited by hand. This file starts
 * wpk-evaluate, which owns a builder and a runner, and shows its record. */
#include "client/command.h"
#include "client/follow.h"
#include "client/private.h"
#include "client/schedule_file.h"
#include "common/format.h"
#include "common/fs.h"
#include "common/json.h"
#include "schema/device.h"
#include "schema/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULE_SIZE_MAX ((size_t)1 << 20)
#define OUTPUT_SIZE_MAX ((size_t)8 << 20)
#define ARTIFACT_SIZE_MAX ((size_t)256 << 20)
#define PATH_SIZE 4096
#define GRACE_MS 5000

struct build {
    const char *path;     /* of the schedule */
    const char *out_path; /* of the shared object; NULL: none wanted */
    const char *gpu;      /* that it is run on; NULL: the schedule is for the CPU */
    bool json;
    const char *layouts;
    int threads;
    const char *tmp_dir;
    char dir[PATH_SIZE]; /* private, in tmp_dir; removed at the end */
    char op_path[PATH_SIZE];
    char output_path[PATH_SIZE];
};

static wpk_err prepare(struct build *build, struct wpk_diag *diag)
{
    struct wpk_buf text = {.size_max = SCHEDULE_SIZE_MAX + 1};
    struct wpk_buf op = {.size_max = SCHEDULE_SIZE_MAX};

    wpk_err err = wpk_fs_read(build->path, SCHEDULE_SIZE_MAX, &text, diag);
    if (err == WPK_OK) {
        err = wpk_schedule_file_read(wpk_buf_text(&text), &op, &build->layouts, &build->threads,
                                     diag);
        err = wpk_diag_in_file(diag, err, build->path);
    } else if (err == WPK_ENOENT) {
        err = WPK_EINVAL;
    }
    if (err == WPK_OK && build->gpu == NULL &&
        strstr(wpk_buf_text(&text), "\ntarget cuda-") != NULL) {
        err = wpk_fail(diag, WPK_EINVAL, "%s is for a GPU: --gpu 0 runs it, or --gpu emulated",
                       build->path);
    }
    if (err == WPK_OK) {
        err = wpk_fs_make_temporary(build->tmp_dir, "wpk-build", build->dir, sizeof(build->dir),
                                    diag);
    }
    if (err == WPK_OK) {
        snprintf(build->op_path, sizeof(build->op_path), "%s/op", build->dir);
        snprintf(build->output_path, sizeof(build->output_path), "%s/output", build->dir);
        err = wpk_fs_write(build->op_path, wpk_buf_text(&op), op.size, 0600, diag);
    }
    wpk_buf_fini(&text);
    wpk_buf_fini(&op);
    return err;
}

/* Run wpk-evaluate to its end; its exit code in *code. */
static wpk_err evaluate(const struct build *build, int *code, struct wpk_diag *diag)
{
    struct wpk_child child = {0};
    char threads[16];
    bool gpu = build->gpu != NULL;
    const char *const argv[] = {"wpk-evaluate", "--quiet",
                                "--keep",       "--op",
                                build->op_path, "--schedule",
                                build->path,    "--work",
                                build->dir,     "--layouts",
                                build->layouts, "--threads",
                                threads,        gpu ? "--gpu" : NULL,
                                build->gpu,     NULL};

    snprintf(threads, sizeof(threads), "%d", build->threads);
    wpk_err err = wpk_child_start(&child, argv, build->output_path, diag);
    if (err == WPK_OK) {
        *code = wpk_child_wait(&child, wpk_follow_interrupted);
        if (wpk_follow_interrupted()) {
            wpk_child_stop(&child, GRACE_MS);
        }
    }
    return err;
}

/* The line of the record: what a sanitizer or the loader says on stderr goes to the same file. */
static const char *record_line(const char *text)
{
    while (*text != '\0' && *text != '{') {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text;
}

/* Take the record out of {"index":0,"candidate":"","record":{...}}. */
static wpk_err read_record(const struct build *build, struct wpk_record *record,
                           struct wpk_diag *diag)
{
    struct wpk_buf line = {.size_max = OUTPUT_SIZE_MAX + 1};
    struct wpk_buf text = {.size_max = OUTPUT_SIZE_MAX};
    struct wpk_json_reader *reader;

    wpk_err err = wpk_fs_read(build->output_path, OUTPUT_SIZE_MAX, &line, diag);
    if (err == WPK_OK) {
        const char *start = record_line(wpk_buf_text(&line));
        err = wpk_json_open(start, strcspn(start, "\n"), OUTPUT_SIZE_MAX, &reader, diag);
    }
    if (err == WPK_OK) {
        wpk_json_get_raw(reader, "record", &text);
        err = wpk_json_status(reader);
        wpk_json_close(reader);
    }
    err = err == WPK_OK ? wpk_record_decode(wpk_buf_text(&text), record, diag) : err;
    wpk_buf_fini(&line);
    wpk_buf_fini(&text);
    return err;
}

static void print_record(const struct wpk_record *record, bool emulated)
{
    char median[WPK_FORMAT_SIZE];
    char mad[WPK_FORMAT_SIZE];
    char build[WPK_FORMAT_SIZE];

    wpk_format_ns(record->build_ns, build);
    printf("outcome    %s\n", wpk_outcome_name(record->outcome));
    if (record->outcome == WPK_OUTCOME_OK && emulated) {
        wpk_format_modelled(record->timing.median_ns, median);
        printf("time       %s: a model's\n", median);
    } else if (record->outcome == WPK_OUTCOME_OK) {
        wpk_format_ns(record->timing.median_ns, median);
        wpk_format_ns(record->timing.mad_ns, mad);
        printf("time       %s, MAD %s, %d samples of %d calls\n", median,
               record->timing.mad_ns > 0 ? mad : "0 ns", record->timing.sample_count,
               record->timing.repeat_count);
    }
    if (record->outcome == WPK_OUTCOME_OK) {
        printf("max error  %.2e, allowed %.2e\n", record->error_max, record->error_tolerance);
    }
    printf("build      %s\n", build);
    if (record->log[0] != '\0') {
        printf("log        %s\n", record->log);
    }
}

static wpk_err keep_artifact(const struct build *build, const struct wpk_record *record,
                             struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = ARTIFACT_SIZE_MAX + 1};

    if (record->artifact_path == NULL) {
        return wpk_fail(
            diag, WPK_ENOENT,
            "there is no shared object to keep: the log above says why it was not built");
    }
    wpk_err err = wpk_fs_read(record->artifact_path, ARTIFACT_SIZE_MAX, &bytes, diag);
    if (err == WPK_OK) {
        err = wpk_fs_write(build->out_path, wpk_buf_text(&bytes), bytes.size, 0755, diag);
    }
    wpk_buf_fini(&bytes);
    return err;
}

/* The shared object is where the user wanted it, or nowhere: its directory is removed. */
static wpk_err print_json(struct wpk_record *record, const char *kept_path)
{
    char *text = NULL;

    free(record->artifact_path);
    record->artifact_path = kept_path != NULL ? WPK_DEMAND(strdup(kept_path)) : NULL;
    wpk_err err = wpk_record_encode(record, &text);
    if (err == WPK_OK) {
        puts(text);
        free(text);
    }
    return err;
}

static enum wpk_exit show(const struct build *build, struct wpk_diag *diag)
{
    struct wpk_record record = {0};

    wpk_err err = read_record(build, &record, diag);
    if (err != WPK_OK) {
        return wpk_command_fail(err, diag);
    }
    enum wpk_exit status = record.outcome == WPK_OUTCOME_OK ? WPK_EXIT_OK : WPK_EXIT_FAILED;
    bool keep = build->out_path != NULL && status == WPK_EXIT_OK;
    wpk_err kept = keep ? keep_artifact(build, &record, diag) : WPK_OK;
    if (build->json) {
        err = print_json(&record, keep && kept == WPK_OK ? build->out_path : NULL);
    } else {
        print_record(&record, build->gpu != NULL && strcmp(build->gpu, WPK_DEVICE_EMULATED) == 0);
    }
    wpk_record_fini(&record);
    err = kept != WPK_OK ? kept : err;
    return err != WPK_OK ? wpk_command_fail(err, diag) : status;
}

static enum wpk_exit run(struct build *build)
{
    struct wpk_diag diag = {0};
    enum wpk_exit status;
    int code = 0;

    wpk_err err = prepare(build, &diag);
    err = err == WPK_OK ? evaluate(build, &code, &diag) : err;
    if (err == WPK_OK && code > 1 && !wpk_follow_interrupted()) {
        char words[WPK_DIAG_TEXT_MAX];
        wpk_child_last_words(build->output_path, words, sizeof(words));
        wpk_diag_set(&diag, "%s",
                     words[0] != '\0' ? words : "wpk-evaluate failed without a word; try again");
        err = code == 2 ? WPK_EINVAL : WPK_ESYSTEM;
    }
    if (err != WPK_OK) {
        status = wpk_command_fail(err, &diag);
    } else if (wpk_follow_interrupted()) {
        status = WPK_EXIT_INTERRUPTED;
    } else {
        status = show(build, &diag);
    }
    if (build->dir[0] != '\0') {
        (void)!wpk_fs_remove_tree(build->dir, NULL); /* what is left there harms nobody */
    }
    return status;
}

enum wpk_exit wpk_command_build(struct wpk_invocation *call)
{
    struct build build = {.layouts = "fixed", .threads = 1, .tmp_dir = call->context->tmp_dir};
    const struct wpk_option options[] = {
        WPK_ARGS_OUTPUT("keep the shared object", &build.out_path),
        WPK_ARGS_TEXT("gpu", "WHICH", "run it on a GPU: its number or UUID, or `emulated`",
                      &build.gpu),
        WPK_ARGS_FLAG("json", "the record as JSON", &build.json),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    build.path = call->args.operands[0];
    wpk_follow_catch_signals();
    return run(&build);
}
