/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the engine, and putting, planning and taking trials. See engine_state.h for the
 * stages of a trial and for the file that makes each transition. */
#include "worker/engine/engine.h"

#include "common/fs.h"
#include "target/codegen.h"
#include "worker/engine/engine_state.h"
#include "worker/measure.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A safety net. It is wall time: a machine that others use builds several times slower. */
#define BUILD_TIMEOUT_MS_DEFAULT 30000
/* A winner of a large operator faces fresh inputs, whose references take seconds. */
#define RUN_TIMEOUT_MS_DEFAULT 30000
#define EMULATED_TIMES 4 /* longer may a candidate take on a GPU that is emulated */
#define MEMORY_BYTES_DEFAULT ((uint64_t)4 << 30)
#define PLANS_PER_ADVANCE 4 /* planning takes milliseconds; messages must not wait for all of it */

static const char *const directories[] = {"build", "artifacts", "prepare-cache", "answers"};

/* ---- life */

static wpk_err set_up(struct wpk_engine *engine, const struct wpk_engine_options *options,
                      struct wpk_diag *diag)
{
    char absolute[PATH_MAX];
    if (realpath(options->work_dir, absolute) == NULL) {
        wpk_diag_set(diag, "%s: %s%s", options->work_dir, strerror(errno), wpk_fs_advice(errno));
        return wpk_fs_err(errno);
    }
    snprintf(engine->work_dir, sizeof(engine->work_dir), "%s", absolute);
    snprintf(engine->program_dir, sizeof(engine->program_dir), "%s", options->program_dir);
    engine->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (engine->epoll < 0) {
        return WPK_ESYSTEM;
    }
    char path[WPK_ENGINE_PATH_MAX];
    wpk_engine_path(engine, path, "build", NULL); /* left by one who was killed */
    wpk_err err = wpk_fs_remove_tree(path, diag);
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]) && err == WPK_OK; i++) {
        wpk_engine_path(engine, path, directories[i], NULL);
        err = wpk_fs_make_dirs(path, diag);
    }
    if (err == WPK_OK && options->trace_path != NULL) {
        err = wpk_trace_open(&engine->trace, options->trace_path);
    }
    if (err == WPK_OK && !options->builds_not) {
        err = wpk_engine_start_builder(engine, diag);
    }
    if (err == WPK_OK && !options->runs_not) {
        err = wpk_engine_start_runner(engine, diag);
    }
    return err;
}

wpk_err wpk_engine_open(const struct wpk_engine_options *options, struct wpk_engine **out,
                        struct wpk_diag *diag)
{
    WPK_ASSERT(options->program_dir != NULL);
    WPK_ASSERT(options->work_dir != NULL);
    WPK_ASSERT(!options->builds_not || !options->runs_not);
    struct wpk_engine *engine = WPK_DEMAND(calloc(1, sizeof(*engine)));
    engine->epoll = -1;
    engine->builder.process.channel.fd = -1;
    engine->runner.process.channel.fd = -1;
    engine->core_count = wpk_process_core_count();
    struct wpk_engine_options *full = &engine->options;
    *full = *options;
    full->build_timeout_ms =
        options->build_timeout_ms ? options->build_timeout_ms : BUILD_TIMEOUT_MS_DEFAULT;
    full->run_timeout_ms =
        options->run_timeout_ms ? options->run_timeout_ms : RUN_TIMEOUT_MS_DEFAULT;
    full->memory_bytes_max =
        options->memory_bytes_max ? options->memory_bytes_max : MEMORY_BYTES_DEFAULT;
    full->run_memory_bytes_max = full->memory_bytes_max;
    if (wpk_device_is_emulated(&options->device) && options->run_timeout_ms == 0) {
        full->run_timeout_ms *= EMULATED_TIMES;
    }
    if (wpk_device_is_cuda(&options->device)) {
        full->run_memory_bytes_max = 0; /* drivers reserve terabytes of addresses */
    }
    if (full->builder_count <= 0 || full->builder_count > engine->core_count) {
        full->builder_count = engine->core_count;
    }
    /* Engines of one machine that time on one device have one lock. Of a GPU the instance's last
     * part is its UUID. */
    const char *slot = strrchr(options->device.instance, '/');
    wpk_device_lock_init(&engine->device,
                         wpk_device_is_cuda(&options->device) && slot != NULL ? slot + 1 : "cpu");
    engine->slot_count = engine->options.builder_count;
    wpk_planner_init(&engine->planner, &options->device);
    wpk_err err = set_up(engine, options, diag);
    if (err != WPK_OK) {
        wpk_engine_close(engine);
        return err;
    }
    *out = engine;
    return WPK_OK;
}

void wpk_engine_close(struct wpk_engine *engine)
{
    if (engine == NULL) {
        return;
    }
    wpk_process_kill(&engine->builder.process);
    wpk_process_kill(&engine->runner.process);
    wpk_device_lock_give(&engine->device);
    wpk_engine_forget_duel(engine);
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        wpk_engine_clear(&engine->trials[i]);
    }
    for (int i = 0; i < WPK_ENGINE_MEMORY_MAX; i++) {
        wpk_record_fini(&engine->memory[i].record);
    }
    if (engine->work_dir[0] != '\0') {
        char path[WPK_ENGINE_PATH_MAX];
        wpk_engine_path(engine, path, "build", NULL);
        (void)!wpk_fs_remove_tree(path, NULL);
    }
    wpk_planner_fini(&engine->planner);
    wpk_trace_close(&engine->trace);
    if (engine->epoll >= 0) {
        close(engine->epoll);
    }
    free(engine);
}

const struct wpk_diag *wpk_engine_failure(const struct wpk_engine *engine)
{
    return &engine->failure;
}

/* ---- putting and planning */

static void copy_trial(struct wpk_trial_state *state, const struct wpk_trial *trial)
{
    const char *work = trial->work != NULL ? trial->work : "-";
    const char *given[] = {trial->op,       trial->layouts,  trial->provider, trial->candidate,
                           trial->schedule, trial->artifact, trial->anchor,   work};
    const char **kept[] = {&state->trial.op,        &state->trial.layouts,  &state->trial.provider,
                           &state->trial.candidate, &state->trial.schedule, &state->trial.artifact,
                           &state->trial.anchor,    &state->trial.work};
    state->trial = *trial;
    if (trial->target != NULL) {
        state->target = *trial->target;
        state->trial.target = &state->target;
    }
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        state->text[i] = given[i] != NULL ? WPK_DEMAND(strdup(given[i])) : NULL;
        *kept[i] = state->text[i];
    }
    state->trial.policy = wpk_measure_policy(&trial->policy);
}

static bool is_done_here(const struct wpk_engine *engine, const struct wpk_trial *trial)
{
    bool builds = wpk_codegen_of(trial->provider) != NULL && trial->artifact == NULL;
    bool runs = !trial->build_only;
    return !(builds && engine->options.builds_not) && !(runs && engine->options.runs_not) &&
           (builds || runs);
}

wpk_err wpk_engine_put(struct wpk_engine *engine, const struct wpk_trial *trial)
{
    WPK_ASSERT(trial->op != NULL && trial->layouts != NULL);
    WPK_ASSERT(trial->provider != NULL);
    struct wpk_trial_state *state = NULL;
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX && state == NULL; i++) {
        state = engine->trials[i].stage == WPK_TRIAL_FREE ? &engine->trials[i] : NULL;
    }
    if (state == NULL) {
        return WPK_ENOSPC;
    }
    copy_trial(state, trial);
    state->stage = WPK_TRIAL_NEW;
    state->order = ++engine->order;
    state->since_ns = wpk_clock_ns();
    if (state->trial.policy.threads > engine->core_count && !trial->build_only) {
        wpk_engine_fail(engine, state, WPK_OUTCOME_UNSUPPORTED, WPK_ENGINE_TOO_MANY_THREADS,
                        state->trial.policy.threads, engine->core_count);
        return WPK_OK;
    }
    if (!is_done_here(engine, trial)) {
        wpk_engine_fail(engine, state, WPK_OUTCOME_UNSUPPORTED, "this worker %s nothing",
                        engine->options.runs_not ? "runs" : "builds");
        return WPK_OK;
    }
    if (engine->order == 1 && !engine->options.runs_not) {
        /* The answers are computed while the builder warms up. */
        (void)!WPK_ENGINE_SEND(&engine->runner.process.channel, .kind = WPK_ENGINE_MESSAGE_OP,
                               .text = trial->op);
    }
    return WPK_OK;
}

static void plan_vendor(struct wpk_engine *engine, struct wpk_trial_state *trial)
{
    struct wpk_planner_entry *entry = NULL;
    struct wpk_diag diag = {0};
    const struct wpk_planner_request request = {.op = trial->trial.op,
                                                .layouts = trial->trial.layouts,
                                                .threads = trial->trial.policy.threads};
    wpk_err err = wpk_planner_open(&engine->planner, &request, &entry, &diag);
    if (err != WPK_OK) {
        wpk_engine_fail(engine, trial, WPK_OUTCOME_UNSUPPORTED, "%s: %s", wpk_err_text(err),
                        diag.text);
        return;
    }
    trial->planned.rule =
        (struct wpk_verify_rule){.exact = entry->exact, .times = WPK_VERIFY_TIMES};
    trial->stage = WPK_TRIAL_BUILT;
}

/* A trial names the version of what builds it, or none. Records of one are not another's. */
static wpk_err check_back_end(const struct wpk_trial *trial, const struct wpk_codegen *by,
                              struct wpk_diag *diag)
{
    char provider[WPK_BACK_END_MAX];
    wpk_err err = wpk_codegen_provider(by, provider, diag);
    if (err == WPK_OK && strchr(trial->provider, '/') != NULL &&
        strcmp(trial->provider, provider) != 0) {
        err = wpk_fail(diag, WPK_ENOENT, "this worker's is %s, not %s", provider, trial->provider);
    }
    return err == WPK_ENOENT ? WPK_EUNSUPPORTED : err;
}

static void plan(struct wpk_engine *engine, struct wpk_trial_state *trial)
{
    if (wpk_codegen_of(trial->trial.provider) == NULL) {
        plan_vendor(engine, trial);
        return;
    }
    const struct wpk_planner_request request = {
        .device = trial->trial.target,
        .op = trial->trial.op,
        .layouts = trial->trial.layouts,
        .threads = trial->trial.policy.threads,
        .candidate = trial->trial.candidate != NULL ? trial->trial.candidate : "",
        .plain = trial->trial.plain,
        .schedule = trial->trial.schedule,
        .built = trial->trial.artifact != NULL,
    };
    struct wpk_diag diag = {0};
    uint64_t start = wpk_clock_ns();
    wpk_err err = wpk_planner_plan(&engine->planner, &request, &trial->planned, &diag);
    wpk_trace_span(&engine->trace, WPK_TRACE_ENGINE, "plan", trial->trial.id, start,
                   wpk_clock_ns());
    if (err == WPK_OK && trial->trial.artifact == NULL) {
        err = check_back_end(&trial->trial, trial->planned.by, &diag);
    }
    if (err == WPK_ESYSTEM) {
        wpk_engine_break(engine, err, "%s", diag.text);
        wpk_engine_clear(trial);
        return;
    }
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, text, sizeof(text));
        enum wpk_outcome outcome =
            err == WPK_EUNSUPPORTED ? WPK_OUTCOME_UNSUPPORTED : WPK_OUTCOME_BUILD_ERROR;
        wpk_engine_fail(engine, trial, outcome, "%s: %s", wpk_err_text(err), text);
        return;
    }
    if (trial->trial.artifact != NULL) {
        trial->record.build_ns = trial->trial.build_ns;
        trial->stage = WPK_TRIAL_BUILT;
        return;
    }
    wpk_engine_recall(engine, trial);
}

/* True when there is more to plan. Plans stay ahead of the builders by a few, and are not made on
 * cores that are all being timed. */
static bool plan_some(struct wpk_engine *engine)
{
    int waiting = 0;
    if (engine->timed_since_ns > 0 && engine->timed_threads >= engine->core_count) {
        return false;
    }
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        waiting += engine->trials[i].stage == WPK_TRIAL_PLANNED;
    }
    for (int i = 0; i < PLANS_PER_ADVANCE; i++) {
        struct wpk_trial_state *trial = wpk_engine_first(engine, WPK_TRIAL_NEW);
        if (trial == NULL || waiting >= engine->slot_count + PLANS_PER_ADVANCE) {
            return false;
        }
        plan(engine, trial);
        waiting += trial->stage == WPK_TRIAL_PLANNED;
    }
    return wpk_engine_first(engine, WPK_TRIAL_NEW) != NULL;
}

/* ---- the owner's loop */

int wpk_engine_fd(const struct wpk_engine *engine)
{
    return engine->epoll;
}

wpk_err wpk_engine_advance(struct wpk_engine *engine, uint64_t *next_ms)
{
    if (engine->err != WPK_OK) {
        return engine->err;
    }
    wpk_engine_hear_builder(engine);
    wpk_engine_hear_runner(engine);
    wpk_engine_go_if_quiet(engine);
    wpk_engine_feed_runner(engine);
    bool more = plan_some(engine);
    wpk_engine_feed_builder(engine);
    wpk_engine_feed_runner(engine);
    uint64_t now = wpk_clock_ns();
    uint64_t builder = wpk_engine_watch_builder(engine, now);
    uint64_t runner = wpk_engine_watch_runner(engine, now);
    uint64_t next = builder < runner ? builder : runner;
    *next_ms = more ? 0 : next == UINT64_MAX ? UINT64_MAX : next / WPK_NS_PER_MS + 1;
    return engine->err;
}

wpk_err wpk_engine_take(struct wpk_engine *engine, uint64_t *id, struct wpk_record *out)
{
    struct wpk_trial_state *first = NULL;
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        struct wpk_trial_state *trial = &engine->trials[i];
        if (trial->stage == WPK_TRIAL_DONE && (first == NULL || trial->done_at < first->done_at)) {
            first = trial;
        }
    }
    if (first == NULL) {
        return WPK_ENOENT;
    }
    *id = first->trial.id;
    *out = first->record;
    first->record = (struct wpk_record){0};
    wpk_engine_clear(first);
    return WPK_OK;
}
