/* SPDX-License-Identifier: Apache-2.0 */
/* The engine with its real processes: the zygote's loop and the runner as they are, only what
 * generates code is replaced by a fixture that fails as asked. This program is all three: the
 * engine starts it as wpk-builder and wpk-runner, from a directory of links. */
#include "common/fs.h"
#include "runtime/link.h"
#include "runtime/seal.h"
#include "worker/builder.h"
#include "worker/engine_state.h"
#include "worker/runner.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern const unsigned char fixture_bad[];
extern const size_t fixture_bad_size;

static const char op[] = "input X f32[64]\noutput Y f32[64]\nY[i] = X[i] * 2\n";

/* ---- what stands in for the code generator */

static void run_linker(void)
{
    const char *const *command = wpk_link_command(false);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], (char *const *)command);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

wpk_err wpk_builder_build(const struct wpk_builder_options *options)
{
    struct wpk_buf text = {0};
    (void)options;
    wpk_err err = wpk_fs_read("schedule", 1 << 20, &text, NULL);
    WPK_ASSERT(err == WPK_OK);
    if (strstr(text.data, "fake-build-crash") != NULL) {
        raise(SIGSEGV);
    }
    if (strstr(text.data, "fake-build-hang") != NULL) {
        pause();
    }
    if (strstr(text.data, "fake-build-slow") != NULL) {
        usleep(300000);
    }
    if (strstr(text.data, "fake-build-error") != NULL) {
        fprintf(stderr, "the loop does not exist\n");
        return WPK_EINVAL;
    }
    err = wpk_fs_write("main.o", fixture_bad, fixture_bad_size, 0644, NULL);
    if (err == WPK_OK) {
        err = wpk_link_write_parts(".", NULL);
    }
    run_linker();
    return err == WPK_OK ? wpk_seal_write("kernel.so", NULL) : err;
}

/* ---- the engine under test */

struct bench {
    char directory[64];
    struct wpk_engine *engine;
    uint64_t deadline_ns; /* of the whole test */
};

static void make_links(const char *directory)
{
    char self[4096] = {0};
    char link[160];
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    static const char *const names[] = {"wpk-builder", "wpk-runner"};
    for (int i = 0; i < 2; i++) {
        snprintf(link, sizeof(link), "%s/%s", directory, names[i]);
        assert_int_equal(symlink(self, link), 0);
    }
}

static int open_bench(void **state)
{
    static struct bench bench;
    bench = (struct bench){.directory = "/tmp/wpk-engine-XXXXXX",
                           .deadline_ns = wpk_engine_now_ns() + 60 * WPK_NS_PER_S};
    assert_non_null(mkdtemp(bench.directory));
    make_links(bench.directory);
    struct wpk_engine_options options = {
        .program_dir = bench.directory,
        .work_dir = bench.directory,
        .build_timeout_ms = 1000,
        .run_timeout_ms = 1500,
        .memory_bytes_max = (uint64_t)256 << 20,
    };
    assert_int_equal(wpk_device_probe(WPK_ISA_AVX512, &options.device), WPK_OK);
    assert_int_equal(wpk_engine_open(&options, &bench.engine, NULL), WPK_OK);
    *state = &bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    wpk_engine_close(bench->engine);
    assert_int_equal(wpk_fs_remove_tree(bench->directory, NULL), WPK_OK);
    return 0;
}

static void put(struct bench *bench, uint64_t id, const char *behaviour)
{
    char schedule[512];
    snprintf(schedule, sizeof(schedule),
             "wpk-schedule 1\ntarget fake-%s threads 1\nlayout X f32[64] 0\n"
             "layout Y f32[64] 0\nprogram\n"
             "  input X f32[64]\n  output Y f32[64]\n  Y[i] = X[i] * 2\nend\n",
             behaviour);
    const struct wpk_trial trial = {
        .id = id,
        .op = op,
        .layouts = "fixed",
        .provider = "halide-cpu",
        .schedule = schedule,
        .policy = {.threads = 1, .time_ns_min = 1000000, .sample_count = 3},
    };
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
}

static void step(struct bench *bench)
{
    uint64_t next_ms = 0;
    assert_true(wpk_engine_now_ns() < bench->deadline_ns);
    assert_int_equal(wpk_engine_advance(bench->engine, &next_ms), WPK_OK);
    if (next_ms > 0) {
        struct pollfd polled = {.fd = wpk_engine_fd(bench->engine), .events = POLLIN};
        poll(&polled, 1, next_ms > 100 ? 100 : (int)next_ms);
    }
}

static uint64_t take(struct bench *bench, struct wpk_record *out)
{
    uint64_t id = 0;
    while (wpk_engine_take(bench->engine, &id, out) != WPK_OK) {
        step(bench);
    }
    return id;
}

static void expect(struct bench *bench, const char *behaviour, enum wpk_outcome outcome,
                   const char *log)
{
    struct wpk_record record;
    put(bench, 7, behaviour);
    assert_int_equal(take(bench, &record), 7);
    if (record.outcome != outcome || strstr(record.log, log) == NULL) {
        fail_msg("%s: %s, log: %s", behaviour, wpk_outcome_name(record.outcome), record.log);
    }
    assert_int_equal(record.timing.sample_count > 0, outcome == WPK_OUTCOME_OK);
    assert_int_equal(record.artifact_path != NULL, outcome == WPK_OUTCOME_OK);
    assert_non_null(record.schedule);
    wpk_record_fini(&record);
}

static void test_good_kernel(void **state)
{
    struct bench *bench = *state;
    struct wpk_record record;
    put(bench, 42, "good");
    assert_int_equal(take(bench, &record), 42);
    assert_string_equal(record.log, "");
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    assert_true(record.timing.min_ns > 0 && record.timing.min_ns < 1000000);
    assert_true(record.reference_ns > 0 && record.build_ns > 0);
    assert_true(record.verify_ns > 0 && record.measure_ns > 0);
    assert_true(record.error_max == 0);
    assert_int_equal(access(record.artifact_path, R_OK), 0);
    assert_int_equal(strlen(record.artifact_sha256), 64);
    wpk_record_fini(&record);
}

/* Each way to go wrong is an outcome, and the engine goes on. */
static void test_failing_builds(void **state)
{
    expect(*state, "build-error", WPK_OUTCOME_BUILD_ERROR, "the loop does not exist");
    expect(*state, "build-crash", WPK_OUTCOME_BUILD_ERROR, "SIGSEGV");
    expect(*state, "build-hang", WPK_OUTCOME_BUILD_TIMEOUT, "too long");
    expect(*state, "good", WPK_OUTCOME_OK, "");
}

static void test_failing_kernels(void **state)
{
    expect(*state, "crash", WPK_OUTCOME_RUN_CRASH, "SIGSEGV");
    expect(*state, "hang", WPK_OUTCOME_RUN_TIMEOUT, "too long");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* sanitizers reserve more address space than the limit allows: process.c sets none there */
    expect(*state, "memory", WPK_OUTCOME_OUT_OF_MEMORY, "");
#endif
    expect(*state, "overrun", WPK_OUTCOME_WRONG_RESULT, "past a buffer");
    expect(*state, "overrun-far", WPK_OUTCOME_RUN_CRASH, "just past a buffer");
    expect(*state, "underrun", WPK_OUTCOME_RUN_CRASH, "just before a buffer");
    expect(*state, "input", WPK_OUTCOME_WRONG_RESULT, "X");
    expect(*state, "refuse", WPK_OUTCOME_RUN_CRASH, "error");
    expect(*state, "good", WPK_OUTCOME_OK, "");
}

static void test_wrong_numbers(void **state)
{
    expect(*state, "wrong", WPK_OUTCOME_WRONG_RESULT, "Y[63]");
    expect(*state, "slightly-wrong", WPK_OUTCOME_WRONG_RESULT, "Y[1]");
    expect(*state, "nan", WPK_OUTCOME_WRONG_RESULT, "Y[7]");
    expect(*state, "missing", WPK_OUTCOME_WRONG_RESULT, "Y[9]");
    expect(*state, "later-wrong", WPK_OUTCOME_WRONG_RESULT, "Y[0]");
    expect(*state, "good", WPK_OUTCOME_OK, "");
}

static void test_schedule_that_does_not_parse(void **state)
{
    struct bench *bench = *state;
    const struct wpk_trial trial = {
        .id = 1, .op = op, .layouts = "fixed", .provider = "halide-cpu", .schedule = "nonsense"};
    struct wpk_record record;
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    assert_int_equal(take(bench, &record), 1);
    assert_int_equal(record.outcome, WPK_OUTCOME_BUILD_ERROR);
    assert_true(record.log[0] != '\0');
    wpk_record_fini(&record);
}

/* The same schedule again is answered from memory, while the first is under way too. */
static void test_identical_trials(void **state)
{
    struct bench *bench = *state;
    struct wpk_record records[3];
    put(bench, 1, "build-slow");
    put(bench, 2, "build-slow");
    assert_int_equal(take(bench, &records[0]), 1);
    assert_int_equal(take(bench, &records[1]), 2);
    put(bench, 3, "build-slow");
    uint64_t start = wpk_engine_now_ns();
    assert_int_equal(take(bench, &records[2]), 3);
    assert_true(wpk_engine_now_ns() - start < 200 * WPK_NS_PER_MS);
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

/* ---- kill -9 */

static void wait_until_building(struct bench *bench)
{
    while (bench->engine->slot[0] == NULL || !bench->engine->builder.ready) {
        step(bench);
    }
}

static void test_builder_killed_once(void **state)
{
    struct bench *bench = *state;
    struct wpk_record record;
    put(bench, 5, "build-slow");
    wait_until_building(bench);
    pid_t before = bench->engine->builder.process.pid;
    kill(before, SIGKILL);
    assert_int_equal(take(bench, &record), 5);
    assert_int_equal(record.outcome, WPK_OUTCOME_OK);
    assert_int_not_equal(bench->engine->builder.process.pid, before);
    wpk_record_fini(&record);
}

static void test_builder_killed_twice(void **state)
{
    struct bench *bench = *state;
    struct wpk_record record;
    put(bench, 6, "build-slow");
    wait_until_building(bench);
    kill(bench->engine->builder.process.pid, SIGKILL);
    while (bench->engine->slot[0] != NULL) {
        step(bench);
        if (bench->engine->slot[0] != NULL && bench->engine->slot[0]->tries == 2 &&
            bench->engine->builder.ready) {
            break;
        }
    }
    kill(bench->engine->builder.process.pid, SIGKILL);
    assert_int_equal(take(bench, &record), 6);
    assert_int_equal(record.outcome, WPK_OUTCOME_BUILD_ERROR);
    assert_non_null(strstr(record.log, "died twice"));
    wpk_record_fini(&record);
    expect(bench, "good", WPK_OUTCOME_OK, "");
}

static void test_runner_killed(void **state)
{
    struct bench *bench = *state;
    struct wpk_record record;
    put(bench, 8, "hang");
    while (bench->engine->running == NULL) {
        step(bench);
    }
    kill(bench->engine->runner.process.pid, SIGKILL);
    assert_int_equal(take(bench, &record), 8);
    assert_int_equal(record.outcome, WPK_OUTCOME_RUN_TIMEOUT); /* it was tried again */
    wpk_record_fini(&record);
    expect(bench, "good", WPK_OUTCOME_OK, "");
}

/* Not a candidate's fault: nothing is recorded, and whoever waits is told. */
static void test_builder_that_does_not_start(void **state)
{
    struct bench *bench = *state;
    struct wpk_record record;
    char link[160];
    uint64_t id = 0;
    uint64_t next_ms = 0;
    snprintf(link, sizeof(link), "%s/wpk-builder", bench->directory);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("/bin/false", link), 0);
    put(bench, 9, "build-slow");
    wait_until_building(bench);
    kill(bench->engine->builder.process.pid, SIGKILL);
    while (wpk_engine_advance(bench->engine, &next_ms) == WPK_OK) {
        assert_true(wpk_engine_now_ns() < bench->deadline_ns);
        usleep(1000);
    }
    assert_int_equal(wpk_engine_advance(bench->engine, &next_ms), WPK_ESYSTEM);
    assert_non_null(strstr(wpk_engine_failure(bench->engine)->text, "wpk-builder"));
    assert_int_equal(wpk_engine_take(bench->engine, &id, &record), WPK_ENOENT);
}

/* Is anybody left who has its files in that directory? */
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
    struct bench *bench = *state;
    put(bench, 1, "build-hang");
    put(bench, 2, "hang");
    while (bench->engine->running == NULL || !bench->engine->builder.ready) {
        step(bench);
    }
    assert_true(count_processes(bench->directory) >= 4);
    wpk_engine_close(bench->engine);
    bench->engine = NULL;
    for (int i = 0; i < 200 && count_processes(bench->directory) > 0; i++) {
        usleep(10000);
    }
    assert_int_equal(count_processes(bench->directory), 0);
}

static void test_limit_of_trials(void **state)
{
    struct bench *bench = *state;
    const struct wpk_trial trial = {
        .op = op, .layouts = "fixed", .provider = "halide-cpu", .schedule = "nonsense"};
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
    }
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_ENOSPC);
    struct wpk_record record;
    take(bench, &record);
    wpk_record_fini(&record);
    assert_int_equal(wpk_engine_put(bench->engine, &trial), WPK_OK);
}

static void test_duel(void **state)
{
    struct bench *bench = *state;
    struct wpk_record record;
    put(bench, 1, "good");
    take(bench, &record);
    const char *paths[] = {record.artifact_path, record.artifact_path};
    struct wpk_timing timing[2];
    struct wpk_policy policy = {.threads = 1, .time_ns_min = 1000000, .sample_count = 3};
    assert_int_equal(
        wpk_engine_duel(bench->engine, op, "fixed", paths, 2, &policy, 5, timing, NULL), WPK_OK);
    assert_int_equal(timing[0].sample_count, 5);
    assert_int_equal(timing[1].sample_count, 5);
    assert_true(timing[1].min_ns > 0 && timing[1].min_ns <= timing[1].median_ns);
    paths[1] = "/nowhere/kernel.so";
    assert_int_not_equal(
        wpk_engine_duel(bench->engine, op, "fixed", paths, 2, &policy, 5, timing, NULL), WPK_OK);
    wpk_record_fini(&record);
    expect(bench, "crash", WPK_OUTCOME_RUN_CRASH, "SIGSEGV");
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(name_of(argv[0]), "wpk-builder") == 0) {
        return wpk_builder_serve(&(struct wpk_builder_options){.cache_dir = argv[1]});
    }
    if (argc == 3 && strcmp(name_of(argv[0]), "wpk-runner") == 0) {
        return wpk_runner_serve(
            &(struct wpk_runner_options){.answers_dir = argv[1], .onednn_path = argv[2]});
    }
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        CASE(test_good_kernel),
        CASE(test_failing_builds),
        CASE(test_failing_kernels),
        CASE(test_wrong_numbers),
        CASE(test_schedule_that_does_not_parse),
        CASE(test_identical_trials),
        CASE(test_builder_killed_once),
        CASE(test_builder_killed_twice),
        CASE(test_runner_killed),
        CASE(test_builder_that_does_not_start),
        CASE(test_nobody_outlives_the_engine),
        CASE(test_limit_of_trials),
        CASE(test_duel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
