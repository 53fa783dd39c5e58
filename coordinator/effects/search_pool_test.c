/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies that are made while the disk cannot be read. */
#include "coordinator/effects/search_pool.h"

#include "common/log.h"
#include "tests/fixture.h"
#include "tests/sim/faulty_vfs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define STEP_MS 10
#define READS_MAX 10 /* that fail in one attempt to make a strategy */

struct pool {
    struct wpk_fixture *base; /* its store */
    struct wpk_search_pool *pool;
    struct wpk_search search;
};

static void on_wake(void *user)
{
    (void)user; /* the test looks now and then */
}

static void open_search(struct pool *f)
{
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    assert_non_null(opened);
    f->search.handle = 1;
    f->search.op = (char *)"input X f32[8]\noutput Y f32[8]\nY[i] = X[i]\n";
    f->search.policy = (struct wpk_policy){.threads = 1};
    f->search.device = f->base->workers[wpk_fixture_worker(f->base, "w")].hello.device;
    f->search.key.threads = 1;
    snprintf(f->search.key.strategy, sizeof f->search.key.strategy, "ga");
    snprintf(f->search.key.providers, sizeof f->search.key.providers, "halide-cpu");
    snprintf(f->search.key.accuracy, sizeof f->search.key.accuracy, "standard");
    wpk_store_begin(f->base->store);
    wpk_history_open_search(f->base->store, &f->search, opened);
    assert_int_equal(wpk_store_commit(f->base->store, NULL), WPK_OK);
    f->search.id = opened->search_id;
    f->search.problem_id = opened->problem_id;
    wpk_opened_free(opened);
}

static int set_up(void **state)
{
    static int threads = 1;
    void *base = &threads;
    struct pool *f = calloc(1, sizeof *f);
    assert_non_null(f);
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    assert_int_equal(wpk_fixture_set_up(&base), 0);
    f->base = base;
    open_search(f);
    struct wpk_search_pool_options options = {.threads = threads,
                                              .data_dir = f->base->directory,
                                              .clock = f->base->time,
                                              .store = f->base->store,
                                              .wake = on_wake};
    assert_int_equal(wpk_search_pool_new(&options, &f->pool, NULL), WPK_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct pool *f = *state;
    void *base = f->base;
    wpk_search_pool_free(f->pool);
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    free(f);
    return wpk_fixture_tear_down(&base);
}

static void pause_ms(int ms)
{
    struct timespec pause = {0, ms * 1000000L};
    nanosleep(&pause, NULL);
}

static bool wait_for_failure(void)
{
    for (int ms = 0; ms < 60000 && wpk_faulty_vfs_counts().failures == 0; ms += STEP_MS) {
        pause_ms(STEP_MS);
    }
    return wpk_faulty_vfs_counts().failures > 0;
}

static bool take(struct pool *f, struct wpk_search_answer *out)
{
    bool taken = wpk_search_pool_take(f->pool, out);
    for (int ms = 0; ms < 60000 && !taken; ms += STEP_MS) {
        pause_ms(STEP_MS);
        taken = wpk_search_pool_take(f->pool, out);
    }
    return taken;
}

static uint64_t seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec - start->tv_sec) - (now.tv_nsec < start->tv_nsec);
}

/* There is an attempt each second, and no more. */
static void a_disk_that_fails_for_a_moment_fails_no_search(void **state)
{
    struct pool *f = *state;
    struct wpk_search_answer answer;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    wpk_faulty_vfs_set(&(struct wpk_faults){.reads_fail = true});
    wpk_search_pool_ask(f->pool, &f->search, 1);
    assert_true(wait_for_failure());
    pause_ms(10 * STEP_MS);
    uint64_t reads = wpk_faulty_vfs_counts().failures;
    assert_true(reads <= READS_MAX * (1 + seconds_since(&start)));
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    assert_true(take(f, &answer));
    assert_non_null(answer.asked);
    assert_int_equal(answer.asked->err, WPK_OK);
    assert_int_equal(answer.asked->count, 1);
    wpk_search_answer_fini(&answer);
}

/* Nor does it keep anybody: a search that is closed, or the end, waits for no disk. */
static void who_closes_the_search_needs_no_disk(void **state)
{
    struct pool *f = *state;
    struct wpk_search_answer answer;
    wpk_faulty_vfs_set(&(struct wpk_faults){.reads_fail = true});
    wpk_search_pool_ask(f->pool, &f->search, 1);
    assert_true(wait_for_failure());
    wpk_search_pool_close(f->pool, f->search.handle);
    assert_true(take(f, &answer));
    assert_int_equal(answer.asked->err, WPK_EIO);
    wpk_search_answer_fini(&answer);
    wpk_search_pool_ask(f->pool, &f->search, 1); /* as if opened once more; then comes the end */
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("search_pool", WPK_LOG_ERROR, null);
    wpk_faulty_vfs_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_disk_that_fails_for_a_moment_fails_no_search, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_closes_the_search_needs_no_disk, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
