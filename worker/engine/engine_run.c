/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of wpk-runner: one candidate at a time; builds make room while it is timed. */
#include "worker/engine/engine_state.h"

#include "common/log.h"
#include "target/codegen.h"
#include "worker/provider/provider.h"
#include "worker/runner/runner_ops.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* A runner that does not answer at all for so long, on top of a candidate's own time. */
#define SILENCE_NS (120 * WPK_NS_PER_S)

/* More before its first message: an op's first candidate waits for the answers. */
#define ANSWERS_NS (WPK_RUNNER_ANSWERS_SECONDS_MAX * WPK_NS_PER_S)

/* Poll intervals for a free device: without a wake-up, and with one. */
#define DEVICE_AGAIN_NS (10 * WPK_NS_PER_MS)
#define DEVICE_ANYWAY_NS WPK_NS_PER_S

wpk_err wpk_engine_start_runner(struct wpk_engine *engine, struct wpk_diag *diag)
{
    char answers[WPK_ENGINE_PATH_MAX];
    wpk_engine_path(engine, answers, "answers", NULL);
    const struct wpk_device *device = &engine->options.device;
    const char *runs_on = wpk_device_is_emulated(device) ? "emulated"
                          : wpk_device_is_cuda(device)   ? "gpu"
                                                         : "cpu";
    char *argv[] = {(char *)"wpk-runner",
                    answers,
                    (char *)runs_on,
                    (char *)wpk_log_level_name(wpk_log_get_level()),
                    (char *)wpk_log_format_name(wpk_log_get_format()),
                    NULL};
    return wpk_engine_start_program(engine, &engine->runner, "wpk-runner", argv, diag);
}

/* A winner's fresh set depends on the kernel: nobody can have been tuned to it. */
static uint64_t fresh_seed(const struct wpk_trial_state *trial)
{
    uint64_t seed = trial->order;
    for (int i = 0; i < 16 && trial->planned.schedule_sha256[i] != '\0'; i++) {
        seed = seed * 16 + (uint64_t)(trial->planned.schedule_sha256[i] % 16);
    }
    return seed;
}

void wpk_engine_feed_runner(struct wpk_engine *engine)
{
    if (engine->running != NULL || engine->duelling || engine->runner.process.pid == 0) {
        return;
    }
    struct wpk_trial_state *trial = wpk_engine_first(engine, WPK_TRIAL_BUILT);
    if (trial == NULL) {
        return;
    }
    char artifact[WPK_ENGINE_PATH_MAX] = "";
    if (trial->trial.artifact != NULL) {
        snprintf(artifact, sizeof(artifact), "%s", trial->trial.artifact);
    } else if (trial->planned.schedule != NULL) {
        wpk_engine_build_path(engine, trial, artifact, "kernel.so");
    }
    double times = trial->trial.accuracy.times_direct;
    const struct wpk_run_request request = {
        .id = trial->order,
        .work = trial->trial.work,
        .op = trial->trial.op,
        .provider = wpk_codegen_of(trial->trial.provider) != NULL ? WPK_PROVIDER_KERNEL_NAME
                                                                  : trial->trial.provider,
        .layouts = trial->trial.layouts,
        .artifact = artifact,
        .anchor = trial->trial.anchor != NULL ? trial->trial.anchor : "",
        .incumbent_ratio = trial->trial.incumbent_ratio,
        .policy = trial->trial.policy,
        .rule = trial->planned.rule,
        .incumbent_ns = trial->trial.incumbent_ns,
        .accuracy = {times > 0 ? times : WPK_ACCURACY_TIMES_MAX},
        .fresh_seed = fresh_seed(trial),
        .final = trial->trial.final,
        .timeout_ms = engine->options.run_timeout_ms,
        .memory_bytes_max = engine->options.run_memory_bytes_max,
    };
    trial->stage = WPK_TRIAL_RUNNING;
    trial->since_ns = wpk_clock_ns();
    trial->tries++;
    engine->running = trial;
    wpk_engine_expect_runner(engine, engine->options.run_timeout_ms * 4);
    /* If it is dead, that is heard next and the trial is tried once more. */
    (void)!WPK_ENGINE_SEND(&engine->runner.process.channel, .kind = WPK_ENGINE_MESSAGE_RUN,
                           .run = request);
}

/* ---- timing */

/* The name of the runner's work in logs. */
static const char *work_of(const struct wpk_engine *engine)
{
    return engine->running != NULL ? engine->running->trial.work
           : engine->duelling      ? engine->duel_work
                                   : "-";
}

uint64_t wpk_engine_running(const struct wpk_engine *engine)
{
    return engine->running != NULL ? engine->running->trial.id : 0;
}

static void begin_timing(struct wpk_engine *engine, uint64_t id)
{
    if (engine->timed_id != 0 || engine->timed_since_ns != 0) {
        return; /* what a damaged child says twice */
    }
    engine->timed_id = id;
    engine->wanted_ns = wpk_clock_ns();
    if (!engine->duelling) {
        struct wpk_trial_state *trial = engine->running;
        engine->timed_threads = trial->trial.policy.threads;
        wpk_trace_span(&engine->trace, WPK_TRACE_RUNNER, "verify", trial->trial.id, trial->since_ns,
                       engine->wanted_ns);
    }
    wpk_engine_go_if_quiet(engine);
}

/* Builds go on until the device is ours; from then on this thread keeps off the timed cores. */
static bool take_device(struct wpk_engine *engine)
{
    if (engine->timed_since_ns != 0) {
        return true;
    }
    wpk_err err = wpk_device_lock_take(&engine->device);
    if (err == WPK_EBUSY && engine->device.wait_fd >= 0) {
        struct epoll_event event = {.events = EPOLLIN};
        /* It may be listened to already; closing it ends that. */
        (void)epoll_ctl(engine->epoll, EPOLL_CTL_ADD, engine->device.wait_fd, &event);
    } else if (err != WPK_OK && err != WPK_EBUSY) {
        wpk_engine_break(engine, err, "cannot take the device for timing: no local sockets");
    }
    if (err != WPK_OK) {
        return false;
    }
    engine->timed_since_ns = wpk_clock_ns();
    if (engine->timed_since_ns - engine->wanted_ns > WPK_NS_PER_MS) {
        wpk_trace_span(&engine->trace, WPK_TRACE_RUNNER, "wait", wpk_engine_running(engine),
                       engine->wanted_ns, engine->timed_since_ns);
    }
    if (engine->timed_threads < engine->core_count) {
        wpk_process_pin(0, engine->core_count - engine->timed_threads);
    }
    wpk_engine_quiet(engine, true);
    return true;
}

void wpk_engine_go_if_quiet(struct wpk_engine *engine)
{
    if (engine->timed_id == 0 || !take_device(engine)) {
        return;
    }
    for (int core = 0; core < engine->slot_count; core++) {
        if (wpk_engine_is_timed_core(engine, core) && !engine->quiet[core]) {
            return;
        }
    }
    (void)!WPK_ENGINE_SEND(&engine->runner.process.channel, .kind = WPK_ENGINE_MESSAGE_GO,
                           .id = engine->timed_id);
    engine->timed_id = 0;
    engine->deadline_ns = wpk_clock_ns() + engine->patience_ns;
}

uint64_t wpk_engine_device_wanted_ns(const struct wpk_engine *engine)
{
    bool waits = engine->timed_id != 0 && engine->timed_since_ns == 0;
    return waits ? engine->wanted_ns : 0;
}

static void end_timing(struct wpk_engine *engine)
{
    uint64_t now = wpk_clock_ns();
    wpk_device_lock_give(&engine->device);
    engine->timed_id = 0;
    engine->deadline_ns = now + engine->patience_ns;
    if (engine->timed_since_ns == 0) {
        return;
    }
    wpk_trace_span(&engine->trace, WPK_TRACE_RUNNER, engine->duelling ? "duel" : "measure",
                   wpk_engine_running(engine), engine->timed_since_ns, now);
    if (engine->running != NULL) {
        engine->running->since_ns = now;
    }
    wpk_engine_quiet(engine, false);
    engine->timed_since_ns = 0;
    wpk_process_pin(0, 0);
}

/* ---- hearing */

/* End the trial with the runner's record, but for the build time, which the engine knows. */
static void end_run(struct wpk_engine *engine, struct wpk_record *record)
{
    struct wpk_trial_state *trial = engine->running;
    end_timing(engine);
    wpk_trace_span(&engine->trace, WPK_TRACE_RUNNER, wpk_outcome_name(record->outcome),
                   trial->trial.id, trial->since_ns, wpk_clock_ns());
    uint64_t build_ns = trial->record.build_ns;
    wpk_record_fini(&trial->record);
    trial->record = *record;
    *record = (struct wpk_record){0};
    trial->record.build_ns = build_ns;
    /* A candidate cannot say where files lie. */
    free(trial->record.artifact_path);
    trial->record.artifact_path = NULL;
    trial->record.artifact_sha256[0] = '\0';
    engine->running = NULL;
    wpk_engine_finish(engine, trial);
}

static wpk_err hear_result(struct wpk_engine *engine, const struct wpk_engine_message *message)
{
    struct wpk_record records[WPK_DUEL_MAX] = {{0}};
    int count = 0;
    wpk_err err = wpk_engine_message_read_result(message, records, WPK_DUEL_MAX, &count);
    if (err == WPK_OK && engine->duelling && count == engine->duel_count) {
        memcpy(engine->duel_records, records, (size_t)count * sizeof(records[0]));
        end_timing(engine);
        engine->duelling = false;
        return WPK_OK;
    }
    if (err == WPK_OK && count == 1 && engine->running != NULL &&
        engine->running->order == message->id) {
        end_run(engine, &records[0]);
    }
    for (int i = 0; i < count; i++) {
        wpk_record_fini(&records[i]);
    }
    return err;
}

static wpk_err hear(struct wpk_engine *engine, const struct wpk_buf *text)
{
    struct wpk_engine_message message;
    wpk_err err = wpk_engine_message_read(text, &message);
    if (err != WPK_OK) {
        return err;
    }
    bool busy = engine->duelling || engine->running != NULL;
    if (message.kind == WPK_ENGINE_MESSAGE_READY) {
        engine->runner.ready = true;
        engine->runner.starts = 0;
    } else if (message.kind == WPK_ENGINE_MESSAGE_VERIFIED && busy) {
        begin_timing(engine, message.id);
    } else if (message.kind == WPK_ENGINE_MESSAGE_TIMED && busy) {
        end_timing(engine);
    } else if (message.kind == WPK_ENGINE_MESSAGE_RESULT) {
        err = hear_result(engine, &message);
    } else if (message.kind == WPK_ENGINE_MESSAGE_BROKEN) {
        wpk_engine_break_told(engine, "wpk-runner", message.text);
    }
    return err;
}

static void bury_runner(struct wpk_engine *engine, wpk_err err)
{
    struct wpk_trial_state *trial = engine->running;
    bool was_ready = engine->runner.ready;
    pid_t pid = engine->runner.process.pid;
    char how[WPK_PROCESS_END_SIZE];
    wpk_process_describe_end(wpk_engine_stop_program(engine, &engine->runner), how);
    wpk_log(WPK_LOG_WARN, "runner_died", "work=%s pid=%d error=%s end=\"%s\"", work_of(engine),
            (int)pid, wpk_err_name(err), how);
    end_timing(engine);
    engine->running = NULL;
    if (engine->duelling) {
        for (int i = 0; i < engine->duel_count; i++) {
            engine->duel_records[i].outcome = WPK_OUTCOME_RUN_CRASH;
        }
        engine->duelling = false;
    }
    if (trial != NULL) {
        trial->stage = WPK_TRIAL_BUILT;
        trial->tries -= was_ready ? 0 : 1;
        wpk_engine_log_interrupted(trial, "wpk-runner");
        if (trial->tries >= WPK_ENGINE_TRIES_MAX) {
            wpk_engine_fail(engine, trial, WPK_OUTCOME_RUN_CRASH, "the runner died twice");
        }
    }
    if (engine->runner.starts < WPK_ENGINE_STARTS_MAX &&
        wpk_engine_start_runner(engine, NULL) == WPK_OK) {
        return;
    }
    wpk_engine_break(engine, WPK_ESYSTEM, "wpk-runner does not start");
}

void wpk_engine_hear_runner(struct wpk_engine *engine)
{
    wpk_engine_hear_program(engine, &engine->runner, hear, bury_runner);
}

void wpk_engine_expect_runner(struct wpk_engine *engine, uint64_t timeout_ms)
{
    engine->patience_ns = timeout_ms * WPK_NS_PER_MS + SILENCE_NS;
    engine->deadline_ns = wpk_clock_ns() + engine->patience_ns + ANSWERS_NS;
}

uint64_t wpk_engine_watch_runner(struct wpk_engine *engine, uint64_t now_ns)
{
    if ((engine->running == NULL && !engine->duelling) || engine->runner.process.pid == 0) {
        return UINT64_MAX;
    }
    if (engine->timed_id != 0) {
        bool wants = engine->timed_since_ns == 0;
        bool told = engine->device.wait_fd >= 0;
        return !wants ? UINT64_MAX : told ? DEVICE_ANYWAY_NS : DEVICE_AGAIN_NS;
    }
    if (now_ns >= engine->deadline_ns) {
        wpk_log(WPK_LOG_WARN, "runner_hung", "work=%s pid=%d", work_of(engine),
                (int)engine->runner.process.pid);
        wpk_process_signal(engine->runner.process.pid, SIGKILL);
        return WPK_NS_PER_S;
    }
    return engine->deadline_ns - now_ns;
}
