/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of wpk-builder: one build for each core, none on a core that is timed. */
#include "worker/engine/engine_state.h"

#include "common/fs.h"
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A builder that does not answer at all for so long, on top of a build's own time. */
#define SILENCE_NS (60 * WPK_NS_PER_S)

wpk_err wpk_engine_start_builder(struct wpk_engine *engine, struct wpk_diag *diag)
{
    char cache[WPK_ENGINE_PATH_MAX];
    bool cuda = wpk_device_is_cuda(&engine->options.device);
    wpk_engine_path(engine, cache, "prepare-cache", NULL);
    char *argv[] = {(char *)"wpk-builder",
                    cache,
                    (char *)(cuda ? "cuda" : "host"),
                    (char *)wpk_log_level_name(wpk_log_get_level()),
                    (char *)wpk_log_format_name(wpk_log_get_format()),
                    NULL};
    return wpk_engine_start_program(engine, &engine->builder, "wpk-builder", argv, diag);
}

/* Not through wpk_fs_write: what a crash loses here is only built again. */
static wpk_err write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t size = strlen(text);
    if (fd < 0) {
        return wpk_fs_err(errno);
    }
    ssize_t written = write(fd, text, size);
    wpk_err err = written < 0 ? wpk_fs_err(errno) : written < (ssize_t)size ? WPK_ENOSPC : WPK_OK;
    close(fd);
    return err;
}

static wpk_err write_inputs(const struct wpk_engine *engine, const struct wpk_trial_state *trial)
{
    char path[WPK_ENGINE_PATH_MAX];
    wpk_engine_build_path(engine, trial, path, NULL);
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return wpk_fs_err(errno);
    }
    wpk_engine_build_path(engine, trial, path, "schedule");
    wpk_err err = write_file(path, trial->planned.schedule);
    if (err == WPK_OK) {
        wpk_engine_build_path(engine, trial, path, "manifest");
        err = write_file(path, trial->planned.manifest);
    }
    return err;
}

static void start_build(struct wpk_engine *engine, struct wpk_trial_state *trial, int core)
{
    char directory[WPK_ENGINE_PATH_MAX];
    wpk_err err = write_inputs(engine, trial);
    if (err != WPK_OK) {
        wpk_engine_break(engine, err, "cannot write into %.400s: %s", engine->work_dir,
                         wpk_err_text(err));
        return;
    }
    wpk_engine_build_path(engine, trial, directory, NULL);
    const struct wpk_build_request request = {
        .id = trial->order,
        .work = trial->trial.work,
        .directory = directory,
        .core = core,
        .timeout_ms = engine->options.build_timeout_ms,
        .memory_bytes_max = engine->options.memory_bytes_max,
    };
    trial->stage = WPK_TRIAL_BUILDING;
    trial->since_ns = wpk_clock_ns();
    trial->tries++;
    engine->slot[core] = trial;
    /* If it is dead, that is heard next and the trial is tried once more. */
    (void)!WPK_ENGINE_SEND(&engine->builder.process.channel, .kind = WPK_ENGINE_MESSAGE_BUILD,
                           .build = request);
}

void wpk_engine_feed_builder(struct wpk_engine *engine)
{
    if (engine->builder.process.pid == 0) {
        return;
    }
    for (int core = 0; core < engine->slot_count; core++) {
        if (engine->slot[core] != NULL || wpk_engine_is_timed_core(engine, core)) {
            continue;
        }
        struct wpk_trial_state *trial = wpk_engine_first(engine, WPK_TRIAL_PLANNED);
        if (trial == NULL || engine->err != WPK_OK) {
            return;
        }
        start_build(engine, trial, core);
    }
}

/* ---- quiet cores */

bool wpk_engine_is_timed_core(const struct wpk_engine *engine, int core)
{
    int timed = engine->core_count - engine->timed_threads;
    if (engine->timed_since_ns == 0) {
        return false;
    }
    while (timed < engine->core_count && !wpk_process_are_siblings(timed, core)) {
        timed++;
    }
    return timed < engine->core_count;
}

void wpk_engine_quiet(struct wpk_engine *engine, bool quiet)
{
    enum wpk_engine_message_kind kind =
        quiet ? WPK_ENGINE_MESSAGE_PAUSE : WPK_ENGINE_MESSAGE_RESUME;
    for (int core = 0; core < engine->slot_count; core++) {
        if (wpk_engine_is_timed_core(engine, core)) {
            (void)!WPK_ENGINE_SEND(&engine->builder.process.channel, .kind = kind, .core = core);
            /* Where nothing is built, nothing will be: no need to wait for the answer. */
            engine->quiet[core] = quiet && engine->slot[core] == NULL;
        }
    }
}

/* ---- hearing */

static void end_build(struct wpk_engine *engine, const struct wpk_build_reply *reply)
{
    struct wpk_trial_state *trial = wpk_engine_find(engine, reply->id, WPK_TRIAL_BUILDING);
    if (trial == NULL) {
        return;
    }
    for (int core = 0; core < engine->slot_count; core++) {
        if (engine->slot[core] == trial) {
            engine->slot[core] = NULL;
            wpk_trace_span(&engine->trace, WPK_TRACE_BUILDER + core, "build", trial->trial.id,
                           trial->since_ns, wpk_clock_ns());
        }
    }
    trial->record.build_ns = reply->build_ns;
    if (reply->outcome == WPK_OUTCOME_OK && trial->trial.build_only) {
        wpk_engine_finish(engine, trial);
    } else if (reply->outcome == WPK_OUTCOME_OK) {
        trial->stage = WPK_TRIAL_BUILT;
        trial->since_ns = wpk_clock_ns();
        trial->tries = 0;
    } else {
        wpk_engine_fail(engine, trial, reply->outcome, "%s", reply->log);
    }
}

static wpk_err hear(struct wpk_engine *engine, const struct wpk_buf *text)
{
    struct wpk_engine_message message;
    wpk_err err = wpk_engine_message_read(text, &message);
    if (err != WPK_OK) {
        return err;
    }
    if (message.kind == WPK_ENGINE_MESSAGE_READY) {
        engine->builder.ready = true;
        engine->builder.starts = 0;
    } else if (message.kind == WPK_ENGINE_MESSAGE_BUILT) {
        end_build(engine, &message.built);
    } else if (message.kind == WPK_ENGINE_MESSAGE_BROKEN) {
        wpk_engine_break_told(engine, "wpk-builder", message.text);
    } else if (message.kind == WPK_ENGINE_MESSAGE_PAUSED) {
        int core = message.core;
        if (core >= 0 && core < engine->slot_count && wpk_engine_is_timed_core(engine, core)) {
            engine->quiet[core] = true;
        }
    }
    return err;
}

/* Clean up after a builder that died. Trials that it was building are tried once more, and not
 * blamed if it had not even started. All cores that are timed are quiet now. */
static void bury_builder(struct wpk_engine *engine, wpk_err err)
{
    bool was_ready = engine->builder.ready;
    pid_t pid = engine->builder.process.pid;
    char how[WPK_PROCESS_END_SIZE];
    wpk_process_describe_end(wpk_engine_stop_program(engine, &engine->builder), how);
    wpk_log(WPK_LOG_WARN, "builder_died", "pid=%d error=%s end=\"%s\"", (int)pid, wpk_err_name(err),
            how);
    for (int core = 0; core < engine->slot_count; core++) {
        struct wpk_trial_state *trial = engine->slot[core];
        engine->slot[core] = NULL;
        engine->quiet[core] = wpk_engine_is_timed_core(engine, core);
        if (trial == NULL) {
            continue;
        }
        trial->stage = WPK_TRIAL_PLANNED;
        trial->tries -= was_ready ? 0 : 1;
        wpk_engine_log_interrupted(trial, "wpk-builder");
        if (trial->tries >= WPK_ENGINE_TRIES_MAX) {
            wpk_engine_fail(engine, trial, WPK_OUTCOME_BUILD_ERROR, "the builder died twice");
        }
    }
    if (engine->builder.starts < WPK_ENGINE_STARTS_MAX &&
        wpk_engine_start_builder(engine, NULL) == WPK_OK) {
        return;
    }
    wpk_engine_break(engine, WPK_ESYSTEM, "wpk-builder does not start");
}

void wpk_engine_hear_builder(struct wpk_engine *engine)
{
    wpk_engine_hear_program(engine, &engine->builder, hear, bury_builder);
}

uint64_t wpk_engine_watch_builder(struct wpk_engine *engine, uint64_t now_ns)
{
    uint64_t patience = engine->options.build_timeout_ms * 4 * WPK_NS_PER_MS + SILENCE_NS;
    uint64_t next = UINT64_MAX;
    for (int core = 0; core < engine->slot_count; core++) {
        if (engine->slot[core] == NULL) {
            continue;
        }
        uint64_t deadline = engine->slot[core]->since_ns + patience;
        if (now_ns >= deadline) {
            /* The killed builder's end is handled as that of any other. */
            wpk_log(WPK_LOG_WARN, "builder_hung", "work=%s pid=%d seconds=%llu",
                    engine->slot[core]->trial.work, (int)engine->builder.process.pid,
                    (unsigned long long)(patience / WPK_NS_PER_S));
            wpk_process_signal(engine->builder.process.pid, SIGKILL);
            return WPK_NS_PER_S;
        }
        next = deadline - now_ns < next ? deadline - now_ns : next;
    }
    return next;
}
