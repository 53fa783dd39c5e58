/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/effects/file_pool.h"

#include "common/fs.h"
#include "coordinator/store/artifact.h"
#include "schema/message.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

struct queue {
    struct wpk_file_task *first;
    struct wpk_file_task *last;
};

struct worker {
    struct wpk_file_pool *pool;
    pthread_t thread;
    const struct wpk_file_task *change; /* at work; NULL: none */
};

struct wpk_file_pool {
    struct wpk_file_pool_options options;
    struct worker workers[WPK_FILE_THREADS_MAX];
    int worker_count;     /* threads that were started */
    pthread_mutex_t lock; /* guards what follows, and the workers' changes */
    pthread_cond_t work;
    struct queue reads;
    struct queue changes;
    struct queue done;
    uint32_t count;    /* put and not taken */
    size_t read_bytes; /* at most WPK_FILE_READ_BYTES_MAX, if there are threads */
    bool stopping;
};

static void push(struct queue *queue, struct wpk_file_task *task)
{
    task->next = NULL;
    *(queue->last != NULL ? &queue->last->next : &queue->first) = task;
    queue->last = task;
}

/* Take the task after `before` out; NULL: the first. */
static struct wpk_file_task *take_after(struct queue *queue, struct wpk_file_task *before)
{
    struct wpk_file_task **at = before != NULL ? &before->next : &queue->first;
    struct wpk_file_task *task = *at;
    if (task != NULL) {
        *at = task->next;
        queue->last = queue->last == task ? before : queue->last;
        task->next = NULL;
    }
    return task;
}

static bool is_read(const struct wpk_file_task *task)
{
    return task->action == WPK_FILE_GET || task->action == WPK_FILE_GET_IN_TURN ||
           task->action == WPK_FILE_CHECK;
}

/* Bytes of memory that a read has filled. */
static size_t read_size(const struct wpk_file_task *task)
{
    return is_read(task) ? task->bytes.capacity : 0;
}

/* ---- on a thread */

static void perform(const struct wpk_file_pool *pool, struct wpk_file_task *task)
{
    const char *data_dir = pool->options.data_dir;
    switch (task->action) {
    case WPK_FILE_PUT:
        task->err = wpk_artifact_put(data_dir, task->sha256, task->bytes.data, task->bytes.size,
                                     &task->diag);
        break;
    case WPK_FILE_GET:
        task->err = wpk_artifact_look(data_dir, task->sha256, &task->bytes, &task->diag);
        break;
    case WPK_FILE_GET_IN_TURN:
        task->err = wpk_artifact_get(data_dir, task->sha256, &task->bytes, &task->diag);
        break;
    case WPK_FILE_CHECK:
        task->err = wpk_artifact_get(data_dir, task->sha256, &task->bytes, &task->diag);
        wpk_buf_fini(&task->bytes);
        break;
    case WPK_FILE_REMOVE:
        wpk_artifact_remove(data_dir, task->sha256);
        break;
    }
}

static bool is_at_work(const struct wpk_file_pool *pool, const char *sha256)
{
    for (int i = 0; i < pool->worker_count; i++) {
        const struct wpk_file_task *change = pool->workers[i].change;
        if (change != NULL && strcmp(change->sha256, sha256) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_room(const struct wpk_file_pool *pool)
{
    return pool->read_bytes + WPK_MESSAGE_SIZE_MAX <= WPK_FILE_READ_BYTES_MAX;
}

/* With the lock: a read, or the first change of an artifact that no other thread changes now. NULL:
 * there is none, or it is a read and has to wait until others are taken. */
static struct wpk_file_task *take_work(struct wpk_file_pool *pool, struct worker *worker)
{
    struct wpk_file_task *task = has_room(pool) ? take_after(&pool->reads, NULL) : NULL;
    if (task == NULL) {
        struct wpk_file_task *before = NULL;
        task = pool->changes.first;
        while (task != NULL && is_at_work(pool, task->sha256)) {
            before = task;
            task = task->next;
        }
        if (task != NULL && is_read(task) && !has_room(pool)) {
            return NULL;
        }
        task = task != NULL ? take_after(&pool->changes, before) : NULL;
        worker->change = task;
    }
    pool->read_bytes += task != NULL && is_read(task) ? WPK_MESSAGE_SIZE_MAX : 0;
    return task;
}

static void *run_thread(void *user)
{
    struct worker *worker = user;
    struct wpk_file_pool *pool = worker->pool;
    prctl(PR_SET_NAME, "files"); /* as /proc and perf show it */
    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        struct wpk_file_task *task = take_work(pool, worker);
        if (task == NULL) {
            pthread_cond_wait(&pool->work, &pool->lock);
            continue;
        }
        pthread_mutex_unlock(&pool->lock);
        perform(pool, task);
        pthread_mutex_lock(&pool->lock);
        WPK_ASSERT(read_size(task) <= WPK_MESSAGE_SIZE_MAX);
        pool->read_bytes -= is_read(task) ? WPK_MESSAGE_SIZE_MAX - read_size(task) : 0;
        worker->change = NULL; /* one of the same artifact, if it waits, is this thread's next */
        push(&pool->done, task);
        pthread_mutex_unlock(&pool->lock);
        pool->options.wake(pool->options.user);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- the loop's side */

void wpk_file_pool_put(struct wpk_file_pool *pool, struct wpk_file_task *task)
{
    pthread_mutex_lock(&pool->lock);
    WPK_ASSERT(pool->count < WPK_FILE_TASKS_MAX && !pool->stopping);
    pool->count++;
    if (pool->options.threads == 0) {
        perform(pool, task);
        pool->read_bytes += read_size(task);
        push(&pool->done, task);
    } else {
        bool in_turn = !is_read(task) || task->action == WPK_FILE_GET_IN_TURN;
        push(in_turn ? &pool->changes : &pool->reads, task);
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
}

struct wpk_file_task *wpk_file_pool_take(struct wpk_file_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct wpk_file_task *task = take_after(&pool->done, NULL);
    pool->count -= task != NULL;
    pool->read_bytes -= task != NULL ? read_size(task) : 0;
    if (pool->reads.first != NULL || pool->changes.first != NULL) {
        pthread_cond_broadcast(&pool->work); /* a read may have room now */
    }
    pthread_mutex_unlock(&pool->lock);
    return task;
}

static wpk_err start_thread(struct wpk_file_pool *pool, struct wpk_diag *diag)
{
    struct worker *worker = &pool->workers[pool->worker_count];
    worker->pool = pool;
    int code = pthread_create(&worker->thread, NULL, run_thread, worker);
    if (code != 0) {
        return wpk_fail(diag, WPK_ESYSTEM, "no thread for artifacts: %s%s", strerror(code),
                        wpk_fs_advice(code));
    }
    pool->worker_count++;
    return WPK_OK;
}

wpk_err wpk_file_pool_open(const struct wpk_file_pool_options *options, struct wpk_file_pool **out,
                           struct wpk_diag *diag)
{
    struct wpk_file_pool *pool = WPK_DEMAND(calloc(1, sizeof *pool));
    WPK_ASSERT(options->threads <= WPK_FILE_THREADS_MAX);
    pool->options = *options;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    wpk_err err = WPK_OK;
    pthread_mutex_lock(&pool->lock); /* the threads look at each other's changes */
    for (int i = 0; err == WPK_OK && i < options->threads; i++) {
        err = start_thread(pool, diag);
    }
    pthread_mutex_unlock(&pool->lock);
    if (err != WPK_OK) {
        wpk_file_pool_close(pool);
        wpk_file_pool_free(pool);
        return err;
    }
    *out = pool;
    return WPK_OK;
}

static void give_up(struct wpk_file_pool *pool, struct queue *queue)
{
    struct wpk_file_task *task;
    while ((task = take_after(queue, NULL)) != NULL) {
        task->err = WPK_ECLOSED;
        push(&pool->done, task);
    }
}

void wpk_file_pool_close(struct wpk_file_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->worker_count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    pool->worker_count = 0;
    give_up(pool, &pool->reads);
    give_up(pool, &pool->changes);
}

void wpk_file_pool_free(struct wpk_file_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    WPK_ASSERT(pool->worker_count == 0 && pool->count == 0);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
