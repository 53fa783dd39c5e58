/* SPDX-License-Identifier: Apache-2.0 */
/* Files of artifacts, on threads: several at once, those of one artifact in their order. */
#include "coordinator/effects/file_pool.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "schema/message.h"
#include "tests/share.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TASKS 64
#define PATIENCE_S 30 /* then a thread that should come has not */

/* ---- a disk whose syncs wait for each other */

static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int wanted;  /* syncs end when so many are under way at once */
static int at_once; /* syncs under way */

__attribute__((visibility("default"))) int fsync(int fd)
{
    struct timespec until;
    int code = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&disk);
    at_once++;
    if (at_once >= wanted) {
        wanted = 0;
        pthread_cond_broadcast(&changed);
    }
    while (wanted > 0 && code == 0) {
        code = pthread_cond_timedwait(&changed, &disk, &until);
    }
    at_once--;
    pthread_mutex_unlock(&disk);
    errno = EIO;
    return code == 0 ? (int)syscall(SYS_fsync, fd) : -1;
}

/* ---- the pool and its tasks */

struct fixture {
    char directory[64];
    struct wpk_file_pool *pool;
    atomic_int woken;
    struct wpk_file_task tasks[TASKS];
};

static void wake(void *user)
{
    struct fixture *f = user;
    atomic_fetch_add(&f->woken, 1);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-files-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_file_pool_free(f->pool);
    for (int i = 0; i < TASKS; i++) {
        wpk_buf_fini(&f->tasks[i].bytes);
    }
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static void open_pool(struct fixture *f, int threads)
{
    const struct wpk_file_pool_options options = {
        .data_dir = f->directory, .threads = threads, .wake = wake, .user = f};
    assert_int_equal(wpk_file_pool_open(&options, &f->pool, NULL), WPK_OK);
}

/* `content` is what a put writes, and what names the artifact of any. */
static void put(struct fixture *f, int index, enum wpk_file_action action, const char *content)
{
    struct wpk_file_task *task = &f->tasks[index];
    task->action = action;
    task->owner = f;
    wpk_crypto_sha256_hex(content, strlen(content), task->sha256);
    if (action == WPK_FILE_PUT) {
        wpk_buf_append_text(&task->bytes, content);
    }
    wpk_file_pool_put(f->pool, task);
}

static struct wpk_file_task *take(struct fixture *f)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct wpk_file_task *task = NULL;
    for (int i = 0; task == NULL && i < PATIENCE_S * 1000; i++) {
        task = wpk_file_pool_take(f->pool);
        if (task == NULL) {
            nanosleep(&moment, NULL);
        }
    }
    assert_non_null(task);
    return task;
}

static bool is_there(const struct fixture *f, const char *content)
{
    char sha256[WPK_SHA256_HEX_SIZE];
    char path[192];
    wpk_crypto_sha256_hex(content, strlen(content), sha256);
    snprintf(path, sizeof path, "%s/artifacts/%.2s/%s.so", f->directory, sha256, sha256);
    return access(path, R_OK) == 0;
}

/* Each sync waits until so many are under way: one thread alone would wait for ever. */
static void several_at_once(void **state)
{
    struct fixture *f = *state;
    char content[32];
    wanted = 3;
    open_pool(f, 4);
    for (int i = 0; i < TASKS; i++) {
        snprintf(content, sizeof content, "code %d", i);
        put(f, i, WPK_FILE_PUT, content);
    }
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(take(f)->err, WPK_OK);
    }
    assert_int_equal(wanted, 0);
    assert_null(wpk_file_pool_take(f->pool));
    for (int i = 0; i < TASKS; i++) {
        snprintf(content, sizeof content, "code %d", i);
        assert_true(is_there(f, content));
    }
    wpk_file_pool_close(f->pool);
    assert_int_equal(atomic_load(&f->woken), TASKS);
}

/* Written and removed in turns by whichever thread is free: what was said last holds. */
static void in_their_order(void **state)
{
    struct fixture *f = *state;
    open_pool(f, 4);
    for (int i = 0; i < TASKS; i++) {
        put(f, i, i % 4 < 2 ? WPK_FILE_PUT : WPK_FILE_REMOVE, i % 2 == 0 ? "even" : "odd");
    }
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(take(f)->err, WPK_OK);
    }
    assert_false(is_there(f, "even"));
    assert_false(is_there(f, "odd"));
    wpk_file_pool_close(f->pool);
}

static void what_is_read(void **state)
{
    struct fixture *f = *state;
    open_pool(f, 2);
    put(f, 0, WPK_FILE_PUT, "code");
    assert_int_equal(take(f)->err, WPK_OK);
    put(f, 1, WPK_FILE_GET, "code");
    const struct wpk_file_task *task = take(f);
    assert_int_equal(task->err, WPK_OK);
    assert_string_equal(task->bytes.data, "code");
    put(f, 2, WPK_FILE_GET, "none");
    assert_int_equal(take(f)->err, WPK_ENOENT);
    put(f, 3, WPK_FILE_REMOVE, "code");
    take(f);
    put(f, 4, WPK_FILE_GET, "code");
    assert_int_equal(take(f)->err, WPK_ENOENT);
    wpk_file_pool_close(f->pool);
}

/* It ends what it has begun; the rest says that it was not. */
static void closed_at_work(void **state)
{
    struct fixture *f = *state;
    char content[32];
    int written = 0;
    open_pool(f, 1);
    for (int i = 0; i < TASKS; i++) {
        snprintf(content, sizeof content, "code %d", i);
        put(f, i, WPK_FILE_PUT, content);
    }
    wpk_file_pool_close(f->pool);
    for (int i = 0; i < TASKS; i++) {
        const struct wpk_file_task *task = wpk_file_pool_take(f->pool);
        assert_non_null(task);
        snprintf(content, sizeof content, "code %d", (int)(task - f->tasks));
        assert_int_equal(is_there(f, content), task->err == WPK_OK);
        assert_true(task->err == WPK_OK || task->err == WPK_ECLOSED);
        written += task->err == WPK_OK;
    }
    assert_null(wpk_file_pool_take(f->pool));
    assert_in_range(written, 0, TASKS);
}

/* One thread, and reads go first: the removal is done because reads have to wait until some are
 * taken. */
static void reads_that_are_not_taken(void **state)
{
    struct fixture *f = *state;
    const struct timespec moment = {.tv_nsec = 1000000};
    char *content = malloc(WPK_ARTIFACT_SIZE_MAX);
    const int most = (int)(WPK_FILE_READ_BYTES_MAX / WPK_MESSAGE_SIZE_MAX);
    int read = 0;
    assert_non_null(content);
    memset(content, 'x', WPK_ARTIFACT_SIZE_MAX - 1);
    content[WPK_ARTIFACT_SIZE_MAX - 1] = '\0';
    open_pool(f, 1);
    put(f, 0, WPK_FILE_PUT, content);
    put(f, 1, WPK_FILE_PUT, "code");
    take(f);
    take(f);
    for (int i = 0; i < 2 * most; i++) {
        put(f, 2 + i, WPK_FILE_GET, content);
    }
    put(f, 2 + 2 * most, WPK_FILE_REMOVE, "code");
    put(f, 3 + 2 * most, WPK_FILE_GET_IN_TURN, content);
    free(content);
    for (int i = 0; is_there(f, "code") && i < PATIENCE_S * 1000; i++) {
        nanosleep(&moment, NULL);
    }
    while (take(f)->action != WPK_FILE_REMOVE) {
        read++;
    }
    assert_in_range(read, 1, most);
    for (; read < 2 * most + 1; read++) {
        assert_int_equal(take(f)->err, WPK_OK);
    }
    wpk_file_pool_close(f->pool);
}

static void without_threads(void **state)
{
    struct fixture *f = *state;
    open_pool(f, 0);
    put(f, 0, WPK_FILE_PUT, "code");
    assert_true(is_there(f, "code"));
    assert_ptr_equal(wpk_file_pool_take(f->pool), &f->tasks[0]);
    assert_int_equal(atomic_load(&f->woken), 0);
    wpk_file_pool_close(f->pool);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(several_at_once), CASE(in_their_order),           CASE(what_is_read),
        CASE(closed_at_work),  CASE(reads_that_are_not_taken), CASE(without_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
