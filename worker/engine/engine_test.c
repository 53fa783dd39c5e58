/* SPDX-License-Identifier: Apache-2.0 */
/* Trials: what becomes of each, what is remembered, and what dies on the way. */
#include "tests/engine_bench.h"
#include "worker/engine/engine_state.h"

#include "common/fs.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static void test_good_kernel(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    bench_put(bench, 42, "good");
    assert_int_equal(bench_take(bench, &record), 42);
    /* A machine that others use may say that it was not steady, and nothing else. */
    assert_true(record.log[0] == '\0' || strncmp(record.log, "its time is uncertain", 21) == 0);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    assert_true(record.timing.min_ns > 0 && record.timing.min_ns <= record.timing.median_ns);
    assert_true(record.anchor_ns == 0 && record.build_ns > 0);
    assert_true(record.verify_ns > 0 && record.measure_ns > 0);
    assert_true(record.error_max == 0);
    assert_int_equal(access(record.artifact_path, R_OK), 0);
    assert_int_equal(strlen(record.artifact_sha256), 64);
    wpk_record_fini(&record);
}

/* Each way to go wrong is an outcome, and the engine goes on. */
static void test_failing_builds(void **state)
{
    bench_expect(*state, "build-error", WPK_OUTCOME_BUILD_ERROR, "the loop does not exist");
    bench_expect(*state, "build-crash", WPK_OUTCOME_BUILD_ERROR, "SIGSEGV");
    bench_be_impatient(*state);
    bench_expect(*state, "build-hang", WPK_OUTCOME_BUILD_TIMEOUT, "too long");
    bench_be_patient(*state);
    bench_expect(*state, "good", WPK_OUTCOME_OK, "");
}

static void test_failing_kernels(void **state)
{
    bench_expect(*state, "crash", WPK_OUTCOME_RUN_CRASH, "SIGSEGV");
    bench_be_impatient(*state);
    bench_expect(*state, "hang", WPK_OUTCOME_RUN_TIMEOUT, "too long");
    bench_be_patient(*state);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* sanitizers reserve more address space than the limit allows: process.c sets none there */
    bench_expect(*state, "memory", WPK_OUTCOME_OUT_OF_MEMORY, "");
#endif
    bench_expect(*state, "overrun", WPK_OUTCOME_WRONG_RESULT, "past a buffer");
    bench_expect(*state, "overrun-far", WPK_OUTCOME_RUN_CRASH, "just past a buffer");
    bench_expect(*state, "underrun", WPK_OUTCOME_RUN_CRASH, "just before a buffer");
    bench_expect(*state, "overread", WPK_OUTCOME_RUN_CRASH, "just past a buffer");
    bench_expect(*state, "underread", WPK_OUTCOME_RUN_CRASH, "just before a buffer");
    bench_expect(*state, "slack", WPK_OUTCOME_OK, "");
    bench_expect(*state, "constant", WPK_OUTCOME_RUN_CRASH, "just past a buffer");
    bench_expect(*state, "aligned", WPK_OUTCOME_RUN_CRASH, "SIGSEGV");
    bench_expect(*state, "input", WPK_OUTCOME_WRONG_RESULT, "X");
    bench_expect(*state, "refuse", WPK_OUTCOME_RUN_CRASH, "error");
    bench_expect(*state, "good", WPK_OUTCOME_OK, "");
}

static void test_wrong_numbers(void **state)
{
    bench_expect(*state, "wrong", WPK_OUTCOME_WRONG_RESULT, "Y[59]");
    bench_expect(*state, "slightly-wrong", WPK_OUTCOME_WRONG_RESULT, "Y[1]");
    bench_expect(*state, "nan", WPK_OUTCOME_WRONG_RESULT, "Y[7]");
    bench_expect(*state, "missing", WPK_OUTCOME_WRONG_RESULT, "Y[9]");
    bench_expect(*state, "later-wrong", WPK_OUTCOME_WRONG_RESULT, "Y[0]");
    bench_expect(*state, "good", WPK_OUTCOME_OK, "");
}

static void test_schedule_that_does_not_parse(void **state)
{
    struct engine_bench *bench = *state;
    const struct wpk_trial trial = {.id = 1,
                                    .op = bench_op,
                                    .layouts = "fixed",
                                    .provider = "halide-cpu",
                                    .schedule = "nonsense"};
    struct wpk_record record;
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    assert_int_equal(bench_take(bench, &record), 1);
    assert_int_equal(record.outcome, WPK_OUTCOME_BUILD_ERROR);
    assert_true(record.log[0] != '\0');
    wpk_record_fini(&record);
}

/* The same schedule again is answered from memory, while the first is under way too. */
static void test_identical_trials(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record records[3];
    bench_put(bench, 1, "build-slow");
    bench_put(bench, 2, "build-slow");
    assert_int_equal(bench_take(bench, &records[0]), 1);
    assert_int_equal(bench_take(bench, &records[1]), 2);
    bench_put(bench, 3, "build-slow");
    assert_int_equal(bench_take(bench, &records[2]), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(records[i].outcome, WPK_OUTCOME_OK);
        assert_int_equal(records[i].build_ns, records[0].build_ns);
        assert_memory_equal(&records[i].timing, &records[0].timing, sizeof(records[0].timing));
        assert_string_equal(records[i].artifact_path, records[0].artifact_path);
    }
    for (int i = 0; i < 3; i++) {
        wpk_record_fini(&records[i]);
    }
}

/* Each of two records of one trial owns its texts. */
static void test_unseen_faults_are_remembered(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record records[2];
    char schedule[BENCH_SCHEDULE_SIZE];
    bench_write_schedule(schedule, "good");
    for (int i = 0; i < 2; i++) {
        const struct wpk_trial trial = {
            .id = (uint64_t)i + 1,
            .op = "input X f32[60]\nconstant C f32[60]\noutput Y f32[60]\nintermediate T f32[60]\n"
                  "T[i] = max(X[i], 0)\nY[i] = max(X[i], C[i]) + select(isnan(C[i]), T[i], 0)\n",
            .layouts = "fixed",
            .provider = "halide-cpu",
            .policy = bench_brief,
            .schedule = schedule};
        assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
        bench_take(bench, &records[i]);
        assert_int_equal(records[i].outcome, WPK_OUTCOME_OK);
        assert_non_null(strstr(records[i].unseen, "T: identity"));
    }
    assert_int_equal(records[0].build_ns, records[1].build_ns);
    assert_ptr_not_equal(records[0].unseen, records[1].unseen);
    wpk_record_fini(&records[0]);
    wpk_record_fini(&records[1]);
}

/* A raced-out candidate is timed again if it may win: the time that it lost to may be gone. */
static void test_losers_are_not_remembered_as_winners(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_trial trial = {.id = 1,
                              .op = bench_op,
                              .layouts = "fixed",
                              .provider = "halide-cpu",
                              .policy = bench_brief,
                              .incumbent_ns = 1};
    struct wpk_record lost;
    struct wpk_record again;
    struct wpk_record won;
    char schedule[BENCH_SCHEDULE_SIZE];
    bench_write_schedule(schedule, "build-slow");
    trial.schedule = schedule;
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    bench_take(bench, &lost);
    assert_int_equal(lost.outcome, WPK_OUTCOME_OK);
    assert_null(lost.artifact_path);
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    bench_take(bench, &again);
    assert_int_equal(again.build_ns, lost.build_ns);
    trial.incumbent_ns = 0;
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    bench_take(bench, &won);
    assert_int_equal(won.outcome, WPK_OUTCOME_OK);
    assert_int_not_equal(won.build_ns, lost.build_ns);
    assert_non_null(won.artifact_path);
    wpk_record_fini(&lost);
    wpk_record_fini(&again);
    wpk_record_fini(&won);
}

/* ---- kill -9 */

static void wait_until_building(struct engine_bench *bench)
{
    while (bench->engine->slot[0] == NULL || !bench->engine->builder.ready) {
        bench_step(bench);
    }
}

static void test_builder_killed_once(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    bench_put(bench, 5, "build-slow");
    wait_until_building(bench);
    pid_t before = bench->engine->builder.process.pid;
    kill(before, SIGKILL);
    assert_int_equal(bench_take(bench, &record), 5);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    assert_int_not_equal(bench->engine->builder.process.pid, before);
    wpk_record_fini(&record);
}

static void test_builder_killed_twice(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    bench_put(bench, 6, "build-slow");
    wait_until_building(bench);
    kill(bench->engine->builder.process.pid, SIGKILL);
    while (bench->engine->slot[0] != NULL) {
        bench_step(bench);
        if (bench->engine->slot[0] != NULL && bench->engine->slot[0]->tries == 2 &&
            bench->engine->builder.ready) {
            break;
        }
    }
    kill(bench->engine->builder.process.pid, SIGKILL);
    assert_int_equal(bench_take(bench, &record), 6);
    assert_int_equal(record.outcome, WPK_OUTCOME_BUILD_ERROR);
    assert_non_null(strstr(record.log, "died twice"));
    wpk_record_fini(&record);
    bench_expect(bench, "good", WPK_OUTCOME_OK, "");
}

/* It is told that its patience is over instead of waiting for that. */
static void test_builder_that_hangs(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_engine *engine = bench->engine;
    struct wpk_record record;
    bench_put(bench, 7, "build-slow");
    wait_until_building(bench);
    pid_t before = engine->builder.process.pid;
    kill(before, SIGSTOP);
    uint64_t now_ns = wpk_clock_ns();
    uint64_t patience_ns = wpk_engine_watch_builder(engine, now_ns);
    assert_in_range(patience_ns, engine->options.build_timeout_ms * WPK_NS_PER_MS, UINT64_MAX - 1);
    assert_false(bench_logged("builder_hung"));
    wpk_engine_watch_builder(engine, now_ns + patience_ns);
    assert_true(bench_logged(" builder_hung work=- pid="));
    assert_int_equal(bench_take(bench, &record), 7);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK); /* it was tried again */
    assert_int_not_equal(engine->builder.process.pid, before);
    wpk_record_fini(&record);
}

static void test_runner_killed(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    bench_be_impatient(bench);
    bench_put(bench, 8, "hang");
    while (bench->engine->running == NULL) {
        bench_step(bench);
    }
    kill(bench->engine->runner.process.pid, SIGKILL);
    assert_int_equal(bench_take(bench, &record), 8);
    assert_int_equal(record.outcome, WPK_OUTCOME_RUN_TIMEOUT); /* it was tried again */
    wpk_record_fini(&record);
    bench_expect(bench, "good", WPK_OUTCOME_OK, "");
}

/* Not a candidate's fault: nothing is recorded, and whoever waits is told. */
static void test_builder_that_does_not_start(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    char link[160];
    uint64_t id = 0;
    uint64_t next_ms = 0;
    snprintf(link, sizeof(link), "%s/wpk-builder", bench->directory);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("/bin/false", link), 0);
    bench_put(bench, 9, "build-slow");
    wait_until_building(bench);
    kill(bench->engine->builder.process.pid, SIGKILL);
    while (wpk_engine_advance(bench->engine, &next_ms) == WPK_OK) {
        assert_true(wpk_clock_ns() < bench->deadline_ns);
        usleep(1000);
    }
    assert_int_equal(wpk_engine_advance(bench->engine, &next_ms), WPK_ESYSTEM);
    assert_non_null(strstr(wpk_engine_failure(bench->engine)->text, "wpk-builder"));
    assert_int_equal(wpk_engine_take(bench->engine, &id, &record), WPK_ENOENT);
}

/* It breaks, and nothing of what was under way has an outcome. */
static void expect_broken(struct engine_bench *bench, const char *why)
{
    struct wpk_record record;
    uint64_t id = 0;
    uint64_t next_ms = 0;
    while (wpk_engine_advance(bench->engine, &next_ms) == WPK_OK) {
        assert_int_equal(wpk_engine_take(bench->engine, &id, &record), WPK_ENOENT);
        assert_true(wpk_clock_ns() < bench->deadline_ns);
        usleep(1000);
    }
    if (strstr(wpk_engine_failure(bench->engine)->text, why) == NULL) {
        fail_msg("%s: %s", why, wpk_engine_failure(bench->engine)->text);
    }
    assert_int_equal(wpk_engine_take(bench->engine, &id, &record), WPK_ENOENT);
}

static void test_builder_without_its_tools(void **state)
{
    bench_put(*state, 9, "build-machine");
    expect_broken(*state, "wpk-builder: there is no linker");
}

static void test_runner_that_cannot_fork(void **state)
{
    struct engine_bench *bench = *state;
    bench_expect(bench, "good", WPK_OUTCOME_OK, "");
    const struct rlimit few = {.rlim_cur = WPK_CHANNEL_FD + 1, .rlim_max = WPK_CHANNEL_FD + 1};
    pid_t runner = bench->engine->runner.process.pid;
    assert_int_equal(prlimit(runner, RLIMIT_NOFILE, &few, NULL), 0);
    bench_put(bench, 9, "wrong");
    expect_broken(bench, "wpk-runner: no process");
}

/* A record does not name what nobody has. */
static void test_artifact_that_cannot_be_kept(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_record record;
    char path[160];
    snprintf(path, sizeof path, "%s/artifacts", bench->directory);
    assert_int_equal(wpk_fs_remove_tree(path, NULL), WPK_OK);
    bench_put(bench, 9, "good");
    assert_int_equal(bench_take(bench, &record), 9);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    assert_null(record.artifact_path);
    assert_string_equal(record.artifact_sha256, "");
    wpk_record_fini(&record);
}

/* The number of processes that are left with files in that directory. */
static int count_processes(const char *directory)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char path[300];
        char link[4096] = {0};
        snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL) {
            continue;
        }
        size_t size = fread(link, 1, sizeof(link) - 1, file);
        fclose(file);
        count += memmem(link, size, directory, strlen(directory)) != NULL;
    }
    closedir(proc);
    return count;
}

static void test_nobody_outlives_the_engine(void **state)
{
    struct engine_bench *bench = *state;
    bench_put(bench, 1, "build-hang");
    bench_put(bench, 2, "hang");
    while (bench->engine->running == NULL || !bench->engine->builder.ready) {
        bench_step(bench);
    }
    /* builder, runner, and the child of each, which are forked a moment later */
    int count = count_processes(bench->directory);
    for (int i = 0; i < 6000 && count < 4; i++) {
        usleep(10000);
        count = count_processes(bench->directory);
    }
    assert_true(count >= 4); /* not counted again: a child that took too long is replaced */
    wpk_engine_close(bench->engine);
    bench->engine = NULL;
    for (int i = 0; i < 6000 && count_processes(bench->directory) > 0; i++) {
        usleep(10000);
    }
    assert_int_equal(count_processes(bench->directory), 0);
}

/* A record of what one compiler built is none of another's. */
static void test_another_compiler(void **state)
{
    struct engine_bench *bench = *state;
    char schedule[BENCH_SCHEDULE_SIZE];
    struct wpk_record record;
    bench_write_schedule(schedule, "good");
    const struct wpk_trial trial = {.op = bench_op,
                                    .layouts = "fixed",
                                    .provider = "halide-cpu/20.0",
                                    .schedule = schedule,
                                    .policy = bench_brief};
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    bench_take(bench, &record);
    assert_int_equal(record.outcome, WPK_OUTCOME_UNSUPPORTED);
    assert_non_null(strstr(record.log, "this worker's is halide-cpu, not halide-cpu/20.0"));
    wpk_record_fini(&record);
}

static void test_limit_of_trials(void **state)
{
    struct engine_bench *bench = *state;
    const struct wpk_trial trial = {
        .op = bench_op, .layouts = "fixed", .provider = "halide-cpu", .schedule = "nonsense"};
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    }
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_ENOSPC);
    struct wpk_record record;
    bench_take(bench, &record);
    wpk_record_fini(&record);
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
}

int main(int argc, char **argv)
{
    int served = bench_serve(argc, argv);
    if (served >= 0) {
        return served;
    }
#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_open, bench_close)
    const struct CMUnitTest tests[] = {
        CASE(test_good_kernel),
        CASE(test_failing_builds),
        CASE(test_failing_kernels),
        CASE(test_wrong_numbers),
        CASE(test_schedule_that_does_not_parse),
        CASE(test_identical_trials),
        CASE(test_unseen_faults_are_remembered),
        CASE(test_losers_are_not_remembered_as_winners),
        CASE(test_builder_killed_once),
        CASE(test_builder_killed_twice),
        CASE(test_builder_that_hangs),
        CASE(test_runner_killed),
        CASE(test_builder_that_does_not_start),
        CASE(test_builder_without_its_tools),
        CASE(test_runner_that_cannot_fork),
        CASE(test_artifact_that_cannot_be_kept),
        CASE(test_nobody_outlives_the_engine),
        CASE(test_limit_of_trials),
        CASE(test_another_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
