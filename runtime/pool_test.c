/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define INDEX_COUNT 64

struct work {
    atomic_int next;
    int done[INDEX_COUNT]; /* plain: each index is one thread's, and the caller reads afterwards */
    atomic_int threads_seen;
    int per_index_us;
};

static void sleep_us(int us)
{
    struct timespec time = {.tv_nsec = us * 1000L};

    nanosleep(&time, NULL);
}

static void take_indices(void *user, int thread)
{
    struct work *work = user;

    atomic_fetch_or(&work->threads_seen, 1 << thread);
    for (;;) {
        int index = atomic_fetch_add(&work->next, 1);
        if (index >= INDEX_COUNT) {
            return;
        }
        work->done[index]++;
        if (work->per_index_us > 0) {
            sleep_us(work->per_index_us);
        }
    }
}

static void check_all_done_once(const struct work *work)
{
    for (int i = 0; i < INDEX_COUNT; i++) {
        assert_int_equal(work->done[i], 1);
    }
}

static void every_index_is_done_once(void **state)
{
    static const int counts[] = {1, 2, 3, 8}; /* more threads than CPUs, too */
    struct wpk_pool *pool = NULL;

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        assert_int_equal(wpk_pool_new(counts[c], NULL, &pool), WPK_OK);
        for (int round = 0; round < 300; round++) {
            struct work work = {0};
            wpk_pool_run(pool, take_indices, &work);
            check_all_done_once(&work);
        }
        wpk_pool_free(pool);
    }
}

static void sleeping_threads_are_woken(void **state)
{
    struct wpk_pool *pool = NULL;

    (void)state;
    assert_int_equal(wpk_pool_new(2, NULL, &pool), WPK_OK);
    for (int round = 0; round < 5; round++) {
        struct work work = {.per_index_us = 200};
        sleep_us(5000); /* past the spinning */
        wpk_pool_run(pool, take_indices, &work);
        check_all_done_once(&work);
        assert_int_equal(atomic_load(&work.threads_seen), 3);
    }
    wpk_pool_free(pool);
}

static void wait_for_second(void *user, int thread)
{
    struct work *work = user;

    if (thread != 0) {
        sleep_us(2000); /* longer than the caller spins */
        work->done[1] = 1;
        return;
    }
    /* Stay until the other one is in, so that the caller must wait for it to leave. */
    atomic_fetch_or(&work->threads_seen, 1);
    work->done[0] = 1;
    sleep_us(1000);
}

static void caller_waits_for_who_came(void **state)
{
    struct wpk_pool *pool = NULL;
    int both = 0;

    (void)state;
    assert_int_equal(wpk_pool_new(2, NULL, &pool), WPK_OK);
    for (int round = 0; round < 20; round++) {
        struct work work = {0};
        wpk_pool_run(pool, wait_for_second, &work);
        assert_int_equal(work.done[0], 1);
        both += work.done[1];
    }
    assert_true(both > 0);
    wpk_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_done_once),
        cmocka_unit_test(sleeping_threads_are_woken),
        cmocka_unit_test(caller_waits_for_who_came),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
