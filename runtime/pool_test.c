/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/pool.h"

#include <sched.h>
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
};

static void sleep_us(int us)
{
    struct timespec time = {.tv_nsec = us * 1000L};

    nanosleep(&time, NULL);
}

static void take_indices(void *user, size_t thread)
{
    struct work *work = user;

    atomic_fetch_or(&work->threads_seen, 1 << thread);
    for (;;) {
        int index = atomic_fetch_add(&work->next, 1);
        if (index >= INDEX_COUNT) {
            return;
        }
        work->done[index]++;
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

/* Until both threads are here, however late the other one is given a core. */
static void meet(struct work *work, size_t thread)
{
    atomic_fetch_or(&work->threads_seen, 1 << thread);
    for (int ms = 0; ms < 60000 && atomic_load(&work->threads_seen) != 3; ms++) {
        sleep_us(1000);
    }
}

static void meet_once(void *user, size_t thread)
{
    meet(user, thread);
}

static void sleeping_threads_are_woken(void **state)
{
    struct wpk_pool *pool = NULL;

    (void)state;
    assert_int_equal(wpk_pool_new(2, NULL, &pool), WPK_OK);
    for (int round = 0; round < 5; round++) {
        struct work work = {0};
        sleep_us(5000); /* past the spinning */
        wpk_pool_run(pool, meet_once, &work);
        assert_int_equal(atomic_load(&work.threads_seen), 3);
    }
    wpk_pool_free(pool);
}

/* The caller leaves first, and has to wait for the other one. */
static void leave_late(void *user, size_t thread)
{
    struct work *work = user;

    meet(work, thread);
    if (thread != 0) {
        sleep_us(2000); /* longer than the caller spins */
    }
    work->done[thread] = 1;
}

static void caller_waits_for_who_came(void **state)
{
    struct wpk_pool *pool = NULL;

    (void)state;
    assert_int_equal(wpk_pool_new(2, NULL, &pool), WPK_OK);
    for (int round = 0; round < 20; round++) {
        struct work work = {0};
        wpk_pool_run(pool, leave_late, &work);
        assert_int_equal(work.done[0], 1);
        assert_int_equal(work.done[1], 1);
    }
    wpk_pool_free(pool);
}

/* ---- where threads are */

#define PLACES_MAX 8

struct places {
    int thread_count;
    atomic_int arrived;
    int cpu[PLACES_MAX];
    int mask_size[PLACES_MAX];
};

static int count_cpus(cpu_set_t *mask)
{
    assert_int_equal(sched_getaffinity(0, sizeof(*mask), mask), 0);
    return CPU_COUNT(mask);
}

static void note_place(void *user, size_t thread)
{
    struct places *places = user;
    cpu_set_t mask;

    places->mask_size[thread] = count_cpus(&mask);
    places->cpu[thread] = sched_getcpu();
    atomic_fetch_add(&places->arrived, 1);
    while (atomic_load(&places->arrived) < places->thread_count) {
        sched_yield(); /* so that nobody does the part of two */
    }
}

static void check_distinct(const struct places *places, const cpu_set_t *allowed)
{
    for (int i = 1; i < places->thread_count; i++) {
        assert_int_equal(places->mask_size[i], 1);
        assert_true(CPU_ISSET((size_t)places->cpu[i], allowed));
        for (int k = 1; k < i; k++) {
            assert_int_not_equal(places->cpu[i], places->cpu[k]);
        }
    }
}

static void threads_have_cpus_of_their_own(void **state)
{
    cpu_set_t before, after;
    struct wpk_pool *pool = NULL;
    int cpu_count = count_cpus(&before);
    struct places places = {.thread_count = cpu_count < PLACES_MAX ? cpu_count : PLACES_MAX};

    (void)state;
    assert_int_equal(wpk_pool_new(places.thread_count, NULL, &pool), WPK_OK);
    wpk_pool_run(pool, note_place, &places);
    check_distinct(&places, &before);
    (void)count_cpus(&after);
    assert_true(CPU_EQUAL(&before, &after)); /* the caller's mask stays */
    wpk_pool_free(pool);
}

static void threads_leave_the_callers_cpu(void **state)
{
    cpu_set_t before, one;
    struct wpk_pool *pool = NULL;

    (void)state;
    if (count_cpus(&before) < 2) {
        skip();
    }
    assert_int_equal(wpk_pool_new(2, NULL, &pool), WPK_OK);
    for (int round = 0; round < 4; round++) {
        struct places places = {.thread_count = 2};
        wpk_pool_run(pool, note_place, &places);
        /* the caller goes where the thread is */
        CPU_ZERO(&one);
        CPU_SET((size_t)places.cpu[1], &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        struct places moved = {.thread_count = 2};
        wpk_pool_run(pool, note_place, &moved);
        assert_int_equal(moved.cpu[0], places.cpu[1]);
        assert_int_not_equal(moved.cpu[1], moved.cpu[0]);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    }
    wpk_pool_free(pool);
}

/* More threads than CPUs: none is pinned. */
static void threads_share_few_cpus(void **state)
{
    cpu_set_t before, one;
    struct wpk_pool *pool = NULL;
    struct places places = {.thread_count = 3};

    (void)state;
    (void)count_cpus(&before);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(wpk_pool_new(3, NULL, &pool), WPK_OK);
    wpk_pool_run(pool, note_place, &places);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(places.cpu[1], places.cpu[0]);
    wpk_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_done_once),
        cmocka_unit_test(sleeping_threads_are_woken),
        cmocka_unit_test(caller_waits_for_who_came),
        cmocka_unit_test(threads_have_cpus_of_their_own),
        cmocka_unit_test(threads_leave_the_callers_cpu),
        cmocka_unit_test(threads_share_few_cpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
