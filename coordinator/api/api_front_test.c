/* SPDX-License-Identifier: Apache-2.0 */
/* More threads than connections to the store. */
#include "coordinator/api/api_front.h"

#include "common/fs.h"
#include "coordinator/store/store.h"
#include "tests/share.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 24
_Static_assert(THREADS > WPK_API_READERS_MAX, "some have to wait");

struct fixture {
    char directory[64];
    struct wpk_store *store;
    struct wpk_api_front *front;
    atomic_int ended;
    atomic_int answered; /* with 200 */
};

/* Threads that have come to wait for a connection: the test's own pthread_cond_wait is linked. */
static atomic_int waits;
int __real_pthread_cond_wait(pthread_cond_t *given, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *given, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *given, pthread_mutex_t *lock)
{
    atomic_fetch_add(&waits, 1);
    return __real_pthread_cond_wait(given, lock);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-front-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    assert_int_equal(wpk_store_open(f->directory, wpk_clock_system(), &f->store, NULL), WPK_OK);
    struct wpk_api_front_options options = {.data_dir = f->directory, .clock = wpk_clock_system()};
    f->front = wpk_api_front_new(&options);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_api_front_free(f->front);
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static void *list_jobs(void *user)
{
    struct fixture *f = user;
    struct wpk_http_request request = {.identity = {.roles = WPK_ROLE_ALL},
                                       .method = "GET",
                                       .path = "/v1/jobs",
                                       .body = "",
                                       .content_type = ""};
    struct wpk_api_answer answer;
    bool now = wpk_api_front_serve(f->front, &request, &answer);
    atomic_fetch_add(&f->answered, now && answer.status == 200);
    wpk_api_answer_fini(&answer);
    atomic_fetch_add(&f->ended, 1);
    return NULL;
}

/* While others have all connections, a request waits; it is not refused. */
static void requests_wait_for_a_connection(void **state)
{
    struct fixture *f = *state;
    struct wpk_store *taken[WPK_API_READERS_MAX];
    pthread_t threads[THREADS];
    struct wpk_diag diag = {0};
    for (int i = 0; i < WPK_API_READERS_MAX; i++) {
        taken[i] = wpk_api_front_take(f->front, &diag);
        assert_non_null(taken[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, list_jobs, f), 0);
    }
    while (atomic_load(&waits) + atomic_load(&f->ended) < THREADS) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&f->ended), 0);
    for (int i = 0; i < WPK_API_READERS_MAX; i++) {
        wpk_api_front_give(f->front, taken[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&f->answered), THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_wait_for_a_connection, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
