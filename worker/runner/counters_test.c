/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/run_batch.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define WORK_NS 10000000 /* of a call, by the thread's own clock */

/* Software counts this, so that it is there without hardware counters. */
static const struct wpk_counter_event task_clock = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK};

static void work(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t end = now.tv_sec * 1000000000 + now.tv_nsec + WORK_NS;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000000000 + now.tv_nsec < end);
}

/* A pool of one, which works while the caller sleeps. */
struct pool {
    pthread_t thread;
    sem_t begin, done;
    bool ends;
};

static void *serve(void *user)
{
    struct pool *pool = user;
    for (;;) {
        while (sem_wait(&pool->begin) != 0) {
        }
        if (pool->ends) {
            return NULL;
        }
        work();
        sem_post(&pool->done);
    }
}

static wpk_err run_in_pool(void *user)
{
    struct pool *pool = user;
    sem_post(&pool->begin);
    while (sem_wait(&pool->done) != 0) {
    }
    return WPK_OK;
}

static wpk_err run_here(void *user)
{
    int *calls = user;
    ++*calls;
    work();
    return WPK_OK;
}

static wpk_err run_badly(void *user)
{
    (void)user;
    return WPK_ENOMEM;
}

static void skip_without_perf_event(void)
{
    int calls = 0;
    double ns = 0;
    assert_int_equal(wpk_counters_sum(run_here, &calls, 1, &task_clock, 1, &ns), WPK_OK);
    if (ns == 0) {
        print_message("perf_event_open is not allowed here\n");
        skip();
    }
}

static void test_mean_of_calls(void **state)
{
    (void)state;
    skip_without_perf_event();
    int calls = 0;
    double ns[2] = {0};
    const struct wpk_counter_event events[] = {{UINT32_MAX, 0}, task_clock};
    assert_int_equal(wpk_counters_sum(run_here, &calls, 5, events, 2, ns), WPK_OK);
    assert_int_equal(calls, 5);
    assert_true(ns[0] == 0); /* no such event */
    assert_true(ns[1] > 0.8 * WORK_NS && ns[1] < 3.0 * WORK_NS);
}

static void test_threads_that_were_there_count(void **state)
{
    (void)state;
    skip_without_perf_event();
    struct pool pool = {.ends = false};
    double ns = 0;
    sem_init(&pool.begin, 0, 0);
    sem_init(&pool.done, 0, 0);
    assert_int_equal(pthread_create(&pool.thread, NULL, serve, &pool), 0);
    assert_int_equal(wpk_counters_sum(run_in_pool, &pool, 3, &task_clock, 1, &ns), WPK_OK);
    pool.ends = true;
    sem_post(&pool.begin);
    pthread_join(pool.thread, NULL);
    assert_true(ns > 0.8 * WORK_NS);
}

static void test_hardware(void **state)
{
    (void)state;
    int calls = 0;
    struct wpk_counters counters;
    assert_int_equal(wpk_counters_read(run_here, &calls, 2, &counters), WPK_OK);
    if (!counters.present) {
        assert_true(counters.cycles == 0 && counters.instructions == 0);
        print_message("no hardware counters here\n");
        skip();
    }
    assert_int_equal(calls, 2);
    assert_true(counters.cycles > 0 && counters.instructions > 0);
}

static void test_failure_is_passed_on(void **state)
{
    (void)state;
    double ns = 0;
    assert_int_equal(wpk_counters_sum(run_badly, NULL, 3, &task_clock, 1, &ns), WPK_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_of_calls),
        cmocka_unit_test(test_threads_that_were_there_count),
        cmocka_unit_test(test_hardware),
        cmocka_unit_test(test_failure_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
