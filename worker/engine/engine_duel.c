/* SPDX-License-Identifier: Apache-2.0 */
/* Duels: artifacts that were kept are timed in turns by the runner. This file sends the request and
 * gives the result to the caller; engine_run.c reads the runner's messages. */
#include "worker/engine/engine_state.h"
#include "worker/measure.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

wpk_err wpk_engine_duel_begin(struct wpk_engine *engine, const struct wpk_duel *duel,
                              struct wpk_diag *diag)
{
    WPK_ASSERT(duel->count > 0 && duel->count <= WPK_DUEL_MAX);
    WPK_ASSERT(duel->round_count > 0 && duel->round_count <= WPK_SAMPLES_MAX);
    if (engine->running != NULL || engine->duelling) {
        return WPK_EBUSY;
    }
    if (engine->options.runs_not) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "this worker runs nothing");
    }
    if (duel->policy->threads > engine->core_count) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, WPK_ENGINE_TOO_MANY_THREADS, duel->policy->threads,
                        engine->core_count);
    }
    wpk_err err = engine->err;
    if (err != WPK_OK) {
        return err;
    }
    snprintf(engine->duel_work, sizeof(engine->duel_work), "%s",
             duel->work != NULL ? duel->work : "-");
    struct wpk_duel_request request = {
        .id = ++engine->order,
        .work = engine->duel_work,
        .op = duel->op,
        .layouts = duel->layouts,
        .count = duel->count,
        .round_count = duel->round_count,
        .policy = wpk_measure_policy(duel->policy),
        .timeout_ms =
            engine->options.run_timeout_ms * (uint64_t)duel->count * (uint64_t)duel->round_count,
        .memory_bytes_max = engine->options.run_memory_bytes_max,
    };
    wpk_engine_forget_duel(engine);
    for (int i = 0; i < duel->count; i++) {
        request.contestant[i] = duel->paths[i];
        engine->duel_path[i] = strdup(duel->paths[i]);
    }
    engine->duelling = true;
    engine->duel_count = duel->count;
    engine->timed_threads = request.policy.threads;
    wpk_engine_expect_runner(engine, request.timeout_ms);
    /* If it is dead, that is heard next. */
    (void)!WPK_ENGINE_SEND(&engine->runner.process.channel, .kind = WPK_ENGINE_MESSAGE_DUEL,
                           .duel = request);
    return WPK_OK;
}

wpk_err wpk_engine_duel_end(struct wpk_engine *engine, struct wpk_timing *timing,
                            struct wpk_diag *diag)
{
    int timed = 0;
    if (engine->duelling && engine->err == WPK_OK) {
        return WPK_EBUSY;
    }
    engine->duelling = false;
    for (int i = 0; i < engine->duel_count; i++) {
        const struct wpk_record *record = &engine->duel_records[i];
        bool ok = engine->err == WPK_OK && record->outcome == WPK_OUTCOME_OK;
        timing[i] = ok ? record->timing : (struct wpk_timing){0};
        timed += timing[i].sample_count > 0;
        if (!ok) {
            const char *path = engine->duel_path[i];
            wpk_diag_set(diag, "%s: %s %s", path != NULL ? path : "",
                         wpk_outcome_name(record->outcome), record->log);
        }
    }
    wpk_engine_forget_duel(engine);
    return engine->err != WPK_OK ? engine->err : timed == 0 ? WPK_EUNSUPPORTED : WPK_OK;
}

static void wait_for_event(struct wpk_engine *engine)
{
    uint64_t next_ms = 0;
    if (wpk_engine_advance(engine, &next_ms) == WPK_OK && next_ms > 0) {
        struct pollfd polled = {.fd = engine->epoll, .events = POLLIN};
        poll(&polled, 1, next_ms > 1000 ? 1000 : (int)next_ms);
    }
}

wpk_err wpk_engine_duel(struct wpk_engine *engine, const struct wpk_duel *duel,
                        struct wpk_timing *timing, struct wpk_diag *diag)
{
    while (engine->running != NULL && engine->err == WPK_OK) {
        wait_for_event(engine);
    }
    wpk_err err = wpk_engine_duel_begin(engine, duel, diag);
    while (err == WPK_OK && engine->duelling && engine->err == WPK_OK) {
        wait_for_event(engine);
    }
    return err == WPK_OK ? wpk_engine_duel_end(engine, timing, diag) : err;
}
