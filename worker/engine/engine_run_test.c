/* SPDX-License-Identifier: Apache-2.0 */
/* Timing: duels, the device that is another engine's, a runner that hangs. */
#include "tests/engine_bench.h"
#include "worker/engine/engine_state.h"

#include "worker/runner/runner_ops.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static wpk_err duel(struct engine_bench *bench, const char *const *paths, int count,
                    const struct wpk_policy *policy, struct wpk_timing *timing,
                    struct wpk_diag *diag)
{
    const struct wpk_duel duel = {.op = bench_op,
                                  .layouts = "fixed",
                                  .paths = paths,
                                  .count = count,
                                  .policy = policy,
                                  .round_count = 5};
    return wpk_engine_duel(bench->engine, &duel, timing, diag);
}

static void test_duel(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    bench_put(bench, 1, "good");
    bench_take(bench, &record);
    const char *paths[] = {record.artifact_path, record.artifact_path};
    struct wpk_timing timing[2];
    struct wpk_diag diag = {0};
    assert_int_equal(duel(bench, paths, 2, &bench_brief, timing, NULL), WPK_OK);
    assert_int_equal(timing[0].sample_count, 5);
    assert_int_equal(timing[1].sample_count, 5);
    assert_true(timing[1].min_ns > 0 && timing[1].min_ns <= timing[1].median_ns);
    /* A kernel that cannot take part does not spoil the duel for the others. */
    paths[0] = "/nowhere/kernel.so";
    assert_int_equal(duel(bench, paths, 2, &bench_brief, timing, &diag), WPK_OK);
    assert_int_equal(timing[0].sample_count, 0);
    assert_int_equal(timing[1].sample_count, 5);
    assert_non_null(strstr(diag.text, "/nowhere/kernel.so"));
    paths[1] = paths[0];
    assert_int_equal(duel(bench, paths, 2, &bench_brief, timing, &diag), WPK_EUNSUPPORTED);
    wpk_record_fini(&record);
    bench_expect(bench, "crash", WPK_OUTCOME_RUN_CRASH, "SIGSEGV");
}

/* The owner goes on meanwhile: only the end has to be asked for. */
static void test_duel_beside_others(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    struct wpk_timing timing[1];
    bench_put(bench, 1, "good");
    bench_take(bench, &record);
    const char *paths[] = {record.artifact_path};
    const struct wpk_duel duel = {.op = bench_op,
                                  .layouts = "fixed",
                                  .paths = paths,
                                  .count = 1,
                                  .policy = &bench_brief,
                                  .round_count = 5};
    assert_int_equal(wpk_engine_duel_begin(bench->engine, &duel, NULL), WPK_OK);
    assert_int_equal(wpk_engine_duel_begin(bench->engine, &duel, NULL), WPK_EBUSY);
    assert_int_equal(wpk_engine_duel_end(bench->engine, timing, NULL), WPK_EBUSY);
    while (wpk_engine_duel_end(bench->engine, timing, NULL) == WPK_EBUSY) {
        bench_step(bench);
    }
    assert_int_equal(timing[0].sample_count, 5);
    wpk_record_fini(&record);
}

/* ---- half of the work */

static void put_half(struct engine_bench *bench, const char *behaviour, bool build_only,
                     const char *artifact)
{
    char schedule[BENCH_SCHEDULE_SIZE];
    bench_write_schedule(schedule, behaviour);
    const struct wpk_trial trial = {
        .id = 9,
        .op = bench_op,
        .layouts = "fixed",
        .provider = "halide-cpu",
        .schedule = schedule,
        .policy = bench_brief,
        .build_only = build_only,
        .artifact = artifact,
        .build_ns = 77,
    };
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
}

static void test_built_here_and_run_there(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record built;
    struct wpk_record record;
    put_half(bench, "good", true, NULL);
    assert_int_equal(bench_take(bench, &built), 9);
    assert_int_equal(built.outcome, WPK_OUTCOME_OK);
    assert_int_equal(built.timing.sample_count, 0);
    assert_true(built.build_ns > 0);
    assert_int_equal(access(built.artifact_path, R_OK), 0);

    put_half(bench, "good", false, built.artifact_path);
    assert_int_equal(bench_take(bench, &record), 9);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    assert_true(record.timing.min_ns > 0);
    assert_int_equal(record.build_ns, 77);
    assert_non_null(record.schedule);
    assert_null(record.artifact_path);
    wpk_record_fini(&record);

    put_half(bench, "good", false, "/nowhere/kernel.so");
    assert_int_equal(bench_take(bench, &record), 9);
    assert_int_not_equal(record.outcome, WPK_OUTCOME_OK);
    wpk_record_fini(&record);

    put_half(bench, "build-error", true, NULL);
    assert_int_equal(bench_take(bench, &record), 9);
    assert_int_equal(record.outcome, WPK_OUTCOME_BUILD_ERROR);
    wpk_record_fini(&record);
    wpk_record_fini(&built);
}

static void expect_beside(struct engine_bench *bench, const char *anchor, enum wpk_outcome outcome,
                          const char *log)
{
    char schedule[BENCH_SCHEDULE_SIZE];
    struct wpk_record built;
    struct wpk_record record;
    put_half(bench, anchor, true, NULL);
    bench_take(bench, &built);
    assert_int_equal(built.outcome, WPK_OUTCOME_OK);
    bench_write_schedule(schedule, "good");
    const struct wpk_trial trial = {.id = 9,
                                    .op = bench_op,
                                    .layouts = "fixed",
                                    .provider = "halide-cpu",
                                    .schedule = schedule,
                                    .policy = bench_brief,
                                    .anchor = built.artifact_path};
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    bench_take(bench, &record);
    assert_int_equal(record.outcome, outcome);
    assert_non_null(strstr(record.log, log));
    assert_true((record.anchor_ns > 0) == (outcome == WPK_OUTCOME_OK));
    assert_int_equal(record.anchor_failed, outcome != WPK_OUTCOME_OK);
    wpk_record_fini(&record);
    wpk_record_fini(&built);
}

/* A failure of the anchor is no outcome of the candidate beside it. */
static void test_anchor_that_fails(void **state)
{
    expect_beside(*state, "good", WPK_OUTCOME_OK, "");
    expect_beside(*state, "crash", WPK_OUTCOME_ABANDONED, "its anchor failed");
    expect_beside(*state, "refuse", WPK_OUTCOME_ABANDONED, "its anchor failed");
    bench_expect(*state, "crash", WPK_OUTCOME_RUN_CRASH, "SIGSEGV");
    bench_be_impatient(*state);
    expect_beside(*state, "hang", WPK_OUTCOME_ABANDONED, "its anchor took too long");
    bench_expect(*state, "hang", WPK_OUTCOME_RUN_TIMEOUT, "took too long");
}

/* Slow as it is nobody will be served it: what only other placements show is not looked for. */
static void test_raced_out_is_not_looked_at_again(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    char schedule[BENCH_SCHEDULE_SIZE];
    bench_write_schedule(schedule, "overread");
    struct wpk_trial trial = {.id = 9,
                              .op = bench_op,
                              .layouts = "fixed",
                              .provider = "halide-cpu",
                              .schedule = schedule,
                              .policy = bench_brief,
                              .incumbent_ns = 1};
    trial.policy.race_ratio = 1.3;
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    bench_take(bench, &record);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    assert_true(record.timing.censored);
    assert_null(record.artifact_path);
    wpk_record_fini(&record);
    bench_expect(bench, "overread", WPK_OUTCOME_RUN_CRASH, "just past a buffer");
}

/* An engine without one of its programs says so, and does the rest. */
static void test_one_half_only(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    bench->engine->options.runs_not = true;
    bench_put(bench, 1, "good");
    assert_int_equal(bench_take(bench, &record), 1);
    assert_int_equal(record.outcome, WPK_OUTCOME_UNSUPPORTED);
    assert_non_null(strstr(record.log, "runs nothing"));
    wpk_record_fini(&record);
    bench->engine->options.runs_not = false;
    bench->engine->options.builds_not = true;
    put_half(bench, "good", true, NULL);
    assert_int_equal(bench_take(bench, &record), 9);
    assert_int_equal(record.outcome, WPK_OUTCOME_UNSUPPORTED);
    assert_non_null(strstr(record.log, "builds nothing"));
    wpk_record_fini(&record);
}

/* The deadline is moved to now instead of waited for. */
static void test_runner_that_hangs_in_a_duel(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_engine *engine = bench->engine;
    struct wpk_timing timing[1];
    while (!engine->runner.ready) {
        bench_step(bench);
    }
    pid_t before = engine->runner.process.pid;
    kill(before, SIGSTOP);
    engine->duelling = true;
    engine->duel_count = 1;
    wpk_engine_expect_runner(engine, 1000);
    /* Answers may be computed before its first message. */
    assert_in_range(engine->patience_ns, WPK_NS_PER_S, 600 * WPK_NS_PER_S);
    assert_in_range(wpk_engine_watch_runner(engine, wpk_clock_ns()),
                    WPK_RUNNER_ANSWERS_SECONDS_MAX * WPK_NS_PER_S,
                    WPK_RUNNER_ANSWERS_SECONDS_MAX * WPK_NS_PER_S + engine->patience_ns);
    engine->deadline_ns = wpk_clock_ns();
    while (engine->duelling) {
        bench_step(bench);
    }
    assert_int_equal(engine->duel_records[0].outcome, WPK_OUTCOME_RUN_CRASH);
    assert_int_equal(wpk_engine_duel_end(engine, timing, NULL), WPK_EUNSUPPORTED);
    assert_int_not_equal(engine->runner.process.pid, before);
    assert_true(bench_logged(" runner_hung work="));
    bench_expect(bench, "good", WPK_OUTCOME_OK, "");
}

/* A kernel is not timed with other threads than asked for, nor its children pinned to core -1. */
static void test_more_threads_than_cores(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_policy policy = {.threads = bench->engine->core_count + 1};
    const char *paths[] = {"onednn"};
    struct wpk_timing timing[1];
    struct wpk_record record;
    struct wpk_diag diag = {0};
    bench_put_with(bench, 3, "good", &policy);
    assert_int_equal(bench_take(bench, &record), 3);
    assert_int_equal(record.outcome, WPK_OUTCOME_UNSUPPORTED);
    assert_non_null(strstr(record.log, "cores"));
    wpk_record_fini(&record);
    assert_int_equal(duel(bench, paths, 1, &policy, timing, &diag), WPK_EUNSUPPORTED);
    assert_non_null(strstr(diag.text, "cores"));
}

/* ---- two engines on one machine */

static void take_device(struct wpk_device_lock *out)
{
    wpk_device_lock_init(out, "cpu");
    while (wpk_device_lock_take(out) != WPK_OK) {
        usleep(1000); /* a worker is at work here */
    }
}

static bool wants_device(const struct engine_bench *bench)
{
    return bench->engine->timed_id != 0 && bench->engine->timed_since_ns == 0;
}

/* Both want the device at the same moment: it was this test's until then. */
static void test_engines_time_in_turns(void **state)
{
    struct engine_bench *first = *state;
    struct engine_bench second;
    const struct wpk_policy policy = {.threads = 1, .time_ns_min = 250000000, .sample_count = 3};
    struct wpk_record record;
    struct wpk_device_lock other;
    uint64_t id = 0;
    take_device(&other);
    bench_start(&second);
    bench_put_with(first, 1, "good", &policy);
    bench_put_with(&second, 1, "good", &policy);
    while (!wants_device(first) || !wants_device(&second)) {
        bench_step(first);
        bench_step(&second);
    }
    wpk_device_lock_give(&other);
    for (int taken = 0; taken < 2;) {
        struct engine_bench *both[] = {first, &second};
        for (int i = 0; i < 2; i++) {
            uint64_t next_ms = 0;
            assert_int_equal(wpk_engine_advance(both[i]->engine, &next_ms), WPK_OK);
            assert_true(first->engine->timed_since_ns == 0 || second.engine->timed_since_ns == 0);
            while (wpk_engine_take(both[i]->engine, &id, &record) == WPK_OK) {
                assert_int_equal(record.outcome, WPK_OUTCOME_OK);
                wpk_record_fini(&record);
                taken++;
            }
        }
        assert_true(wpk_clock_ns() < first->deadline_ns);
        usleep(1000);
    }
    bench_stop(&second);
}

/* Longer than the candidate may take: the wait is not held against it, and nobody is deaf. */
static void test_waiting_for_the_device(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_engine *engine = bench->engine;
    struct wpk_device_lock other;
    struct wpk_record record;
    take_device(&other);
    bench_put(bench, 4, "good");
    while (engine->timed_id == 0) {
        bench_step(bench);
    }
    bench_put(bench, 5, "build-error");
    engine->options.run_timeout_ms = 500; /* the wait for the device does not count */
    uint64_t until = wpk_clock_ns() + 1000 * WPK_NS_PER_MS;
    assert_int_equal(bench_take(bench, &record), 5);
    wpk_record_fini(&record);
    while (wpk_clock_ns() < until) {
        bench_step(bench);
        assert_int_equal(engine->timed_since_ns, 0);
    }
    assert_in_range(wpk_engine_device_wanted_ns(engine), 1, until - 1000 * WPK_NS_PER_MS);
    bench_be_patient(bench);
    wpk_device_lock_give(&other);
    assert_int_equal(bench_take(bench, &record), 4);
    assert_int_equal(wpk_engine_device_wanted_ns(engine), 0);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    wpk_record_fini(&record);
}

int main(int argc, char **argv)
{
    int served = bench_serve(argc, argv);
    if (served >= 0) {
        return served;
    }
#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_open, bench_close)
    const struct CMUnitTest tests[] = {
        CASE(test_duel),
        CASE(test_duel_beside_others),
        CASE(test_built_here_and_run_there),
        CASE(test_anchor_that_fails),
        CASE(test_raced_out_is_not_looked_at_again),
        CASE(test_one_half_only),
        CASE(test_runner_that_hangs_in_a_duel),
        CASE(test_more_threads_than_cores),
        CASE(test_engines_time_in_turns),
        CASE(test_waiting_for_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
