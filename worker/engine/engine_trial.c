/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that all files of the engine use: its paths and programs, finding a trial, ending a
 * trial, and failing the engine. */
#include "worker/engine/engine_state.h"

#include "common/fs.h"
#include "common/log.h"
#include "worker/measure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/statvfs.h>

#define ARTIFACT_SIZE_MAX ((size_t)256 << 20)
#define ROOM_BYTES_MIN ((uint64_t)8 << 20) /* with less, a failure may have been the disk's */

void wpk_engine_path(const struct wpk_engine *engine, char out[WPK_ENGINE_PATH_MAX],
                     const char *name, const char *rest)
{
    snprintf(out, WPK_ENGINE_PATH_MAX, "%s/%s%s%s", engine->work_dir, name, rest != NULL ? "/" : "",
             rest != NULL ? rest : "");
}

void wpk_engine_build_path(const struct wpk_engine *engine, const struct wpk_trial_state *trial,
                           char out[WPK_ENGINE_PATH_MAX], const char *rest)
{
    snprintf(out, WPK_ENGINE_PATH_MAX, "%s/build/%llu%s%s", engine->work_dir,
             (unsigned long long)trial->order, rest != NULL ? "/" : "", rest != NULL ? rest : "");
}

struct wpk_trial_state *wpk_engine_find(struct wpk_engine *engine, uint64_t order,
                                        enum wpk_stage_of_trial stage)
{
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        struct wpk_trial_state *trial = &engine->trials[i];
        if (trial->stage == stage && trial->order == order) {
            return trial;
        }
    }
    return NULL;
}

struct wpk_trial_state *wpk_engine_first(struct wpk_engine *engine, enum wpk_stage_of_trial stage)
{
    struct wpk_trial_state *first = NULL;
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        struct wpk_trial_state *trial = &engine->trials[i];
        if (trial->stage == stage && (first == NULL || trial->order < first->order)) {
            first = trial;
        }
    }
    return first;
}

/* ---- programs */

wpk_err wpk_engine_start_program(struct wpk_engine *engine, struct wpk_engine_program *program,
                                 const char *name, char *const *argv, struct wpk_diag *diag)
{
    char path[WPK_ENGINE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", engine->program_dir, name);
    program->starts++;
    program->ready = false;
    wpk_err err = wpk_process_start(path, argv, &program->process, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(engine->epoll, EPOLL_CTL_ADD, program->process.channel.fd, &event) != 0) {
        wpk_process_kill(&program->process);
        return WPK_ESYSTEM;
    }
    return WPK_OK;
}

void wpk_engine_hear_program(struct wpk_engine *engine, struct wpk_engine_program *program,
                             wpk_err (*hear)(struct wpk_engine *engine, const struct wpk_buf *text),
                             void (*bury)(struct wpk_engine *engine, wpk_err err))
{
    struct wpk_buf text = {0};
    wpk_err err = program->process.pid != 0 ? WPK_OK : WPK_ENOENT;
    while (err == WPK_OK) {
        err = wpk_channel_receive(&program->process.channel, &text);
        err = err == WPK_OK ? hear(engine, &text) : err;
    }
    wpk_buf_fini(&text);
    if (err != WPK_ENOENT) {
        bury(engine, err);
    }
}

int wpk_engine_stop_program(struct wpk_engine *engine, struct wpk_engine_program *program)
{
    if (program->process.channel.fd >= 0) {
        epoll_ctl(engine->epoll, EPOLL_CTL_DEL, program->process.channel.fd, NULL);
    }
    return wpk_process_kill(&program->process);
}

void wpk_engine_log_interrupted(const struct wpk_trial_state *trial, const char *program)
{
    wpk_log(WPK_LOG_INFO, "interrupted", "work=%s by=%s tries=%d of=%d", trial->trial.work, program,
            trial->tries, WPK_ENGINE_TRIES_MAX);
}

/* ---- the end of a trial, and of the engine */

void wpk_engine_clear(struct wpk_trial_state *trial)
{
    for (size_t i = 0; i < sizeof(trial->text) / sizeof(trial->text[0]); i++) {
        free(trial->text[i]);
    }
    wpk_planned_fini(&trial->planned);
    wpk_record_fini(&trial->record);
    *trial = (struct wpk_trial_state){0};
}

void wpk_engine_forget_duel(struct wpk_engine *engine)
{
    for (int i = 0; i < WPK_DUEL_MAX; i++) {
        free(engine->duel_path[i]);
        engine->duel_path[i] = NULL;
        wpk_record_fini(&engine->duel_records[i]);
    }
    engine->duel_count = 0;
}

/* Move the shared object out of the build's directory, under the name of its content. */
static void keep_artifact(struct wpk_engine *engine, struct wpk_trial_state *trial)
{
    char from[WPK_ENGINE_PATH_MAX];
    char to[WPK_ENGINE_PATH_MAX];
    char name[WPK_SHA256_HEX_SIZE + 4];
    struct wpk_buf content;
    wpk_buf_init(&content, ARTIFACT_SIZE_MAX);
    wpk_engine_build_path(engine, trial, from, "kernel.so");
    if (wpk_fs_read(from, ARTIFACT_SIZE_MAX, &content, NULL) == WPK_OK) {
        wpk_crypto_sha256_hex(content.data, content.size, trial->record.artifact_sha256);
        snprintf(name, sizeof(name), "%s.so", trial->record.artifact_sha256);
        wpk_engine_path(engine, to, "artifacts", name);
        if (rename(from, to) == 0) {
            trial->record.artifact_path = strdup(to);
        }
    }
    if (trial->record.artifact_path == NULL) {
        /* A record does not name what nobody has. */
        trial->record.artifact_sha256[0] = '\0';
    }
    wpk_buf_fini(&content);
}

static bool is_worth_keeping(const struct wpk_trial_state *trial)
{
    const struct wpk_record *record = &trial->record;
    if (record->outcome != WPK_OUTCOME_OK || trial->planned.schedule == NULL) {
        return false;
    }
    if (trial->trial.artifact != NULL) {
        return false; /* whoever built it has it */
    }
    bool faster = !record->timing.censored && wpk_measure_beats(record, trial->trial.incumbent_ns,
                                                                trial->trial.incumbent_ratio);
    return trial->trial.keep_artifact || trial->trial.build_only || faster;
}

void wpk_engine_break(struct wpk_engine *engine, wpk_err err, const char *format, ...)
{
    WPK_ASSERT(err != WPK_OK);
    if (engine->err == WPK_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(engine->failure.text, sizeof(engine->failure.text), format, args);
        va_end(args);
        engine->err = err;
    }
}

/* On a full disk every candidate fails, here or in a program of ours, in a different way each. */
static bool has_room(const struct wpk_engine *engine)
{
    struct statvfs disk;
    return statvfs(engine->work_dir, &disk) != 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= ROOM_BYTES_MIN;
}

void wpk_engine_break_told(struct wpk_engine *engine, const char *program, const char *why)
{
    if (!has_room(engine)) {
        wpk_engine_break(engine, WPK_ENOSPC, "no space is left in %.400s", engine->work_dir);
        return;
    }
    wpk_engine_break(engine, WPK_ESYSTEM, "%s: %.*s", program, (int)strcspn(why, "\n"), why);
}

void wpk_engine_finish(struct wpk_engine *engine, struct wpk_trial_state *trial)
{
    WPK_ASSERT(trial->stage != WPK_TRIAL_FREE && trial->stage != WPK_TRIAL_DONE);
    if (trial->record.outcome != WPK_OUTCOME_OK && !has_room(engine)) {
        wpk_engine_break(engine, WPK_ENOSPC, "no space is left in %.400s", engine->work_dir);
        wpk_engine_clear(trial);
        return;
    }
    if (is_worth_keeping(trial)) {
        keep_artifact(engine, trial);
    }
    if (trial->trial.build_only && trial->record.outcome == WPK_OUTCOME_OK &&
        trial->record.artifact_path == NULL) {
        wpk_engine_break(engine, WPK_EIO, "what was built in %.400s is gone", engine->work_dir);
        wpk_engine_clear(trial);
        return;
    }
    if (trial->planned.schedule != NULL) {
        char path[WPK_ENGINE_PATH_MAX];
        wpk_engine_build_path(engine, trial, path, NULL);
        (void)!wpk_fs_remove_tree(path, NULL);
        trial->record.schedule = trial->planned.schedule;
        trial->planned.schedule = NULL;
        memcpy(trial->record.schedule_sha256, trial->planned.schedule_sha256,
               sizeof(trial->record.schedule_sha256));
    }
    wpk_engine_mark_done(engine, trial);
    wpk_engine_remember(engine, trial);
}

void wpk_engine_fail(struct wpk_engine *engine, struct wpk_trial_state *trial,
                     enum wpk_outcome outcome, const char *format, ...)
{
    va_list args;
    trial->record.outcome = outcome;
    va_start(args, format);
    vsnprintf(trial->record.log, sizeof(trial->record.log), format, args);
    va_end(args);
    wpk_engine_finish(engine, trial);
}

wpk_err wpk_trace_open(struct wpk_trace *trace, const char *path)
{
    trace->file = fopen(path, "we");
    if (trace->file == NULL) {
        return wpk_fs_err(errno);
    }
    setvbuf(trace->file, NULL, _IOLBF, 0); /* what a worker that is killed did, is there */
    fprintf(trace->file,
            "[\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":"
            "\"engine\"}},\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{"
            "\"name\":\"runner\"}}",
            WPK_TRACE_ENGINE, WPK_TRACE_RUNNER);
    return WPK_OK;
}

void wpk_trace_close(struct wpk_trace *trace)
{
    if (trace->file != NULL) {
        fputs("\n]\n", trace->file);
        fclose(trace->file);
    }
    *trace = (struct wpk_trace){0};
}

void wpk_trace_span(struct wpk_trace *trace, int row, const char *name, uint64_t trial,
                    uint64_t from_ns, uint64_t to_ns)
{
    if (trace->file == NULL) {
        return;
    }
    fprintf(trace->file,
            ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"trial\":%llu}}",
            name, row, (double)from_ns / 1e3, (double)(to_ns - from_ns) / 1e3,
            (unsigned long long)trial);
}
