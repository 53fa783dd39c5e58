/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/effects/writer.h"

#include "common/fs.h"
#include "common/metrics.h"
#include "coordinator/store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* A queue of batches. */
struct queue {
    struct wpk_batch *first;
    struct wpk_batch *last;
};

struct wpk_writer {
    struct wpk_writer_options options;
    struct wpk_checkpoint *checkpoint; /* NULL: commits see to it */
    pthread_t thread;
    bool running; /* the thread has to be joined */
    _Atomic uint64_t turns;

    pthread_mutex_t lock; /* guards what follows; held for moments only */
    pthread_cond_t work;  /* something waits, or `stopping` */
    struct queue waiting;
    struct queue done;
    bool stopping;
    bool failed;
    bool healed;        /* while failed */
    uint64_t failed_ns; /* when it failed last */
    uint64_t probe_ns;  /* while failed: when to probe next */
    wpk_err err;        /* why it failed */
    struct wpk_diag diag;
};

static void push(struct queue *queue, struct wpk_batch *batch)
{
    batch->next = NULL;
    *(queue->last != NULL ? &queue->last->next : &queue->first) = batch;
    queue->last = batch;
}

static struct wpk_batch *pop(struct queue *queue)
{
    struct wpk_batch *batch = queue->first;
    if (batch != NULL) {
        queue->first = batch->next;
        queue->last = queue->first != NULL ? queue->last : NULL;
        batch->next = NULL;
    }
    return batch;
}

/* The thread waits in the system's time, whatever clock its owner goes by. */
static uint64_t now_ns(const struct wpk_writer *writer)
{
    return wpk_clock_now_ns(writer->options.threaded ? wpk_clock_system() : writer->options.clock);
}

/* With the lock. */
static void fail(struct wpk_writer *writer, wpk_err err, const struct wpk_diag *diag)
{
    writer->failed = true;
    writer->healed = false;
    writer->err = err;
    writer->diag = *diag;
    /* Probe at once after a write's own error: the disk is not at fault, unless failures recur. */
    uint64_t wait_ns = WPK_WRITER_PROBE_MS * WPK_NS_PER_MS;
    uint64_t at_ns = now_ns(writer);
    bool at_once = wpk_store_is_own(err) && at_ns - writer->failed_ns >= wait_ns;
    writer->failed_ns = at_ns;
    writer->probe_ns = at_ns + (at_once ? 0 : wait_ns);
}

/* ---- a transaction */

/* As many as go together, in their order. */
static struct queue take_group(struct wpk_writer *writer)
{
    struct queue group = {0};
    uint32_t batches = 0;
    uint32_t writes = 0;
    while (writer->waiting.first != NULL && batches < WPK_WRITER_GROUP_MAX &&
           writes < WPK_WRITER_WRITES_MAX) {
        struct wpk_batch *batch = pop(&writer->waiting);
        batches++;
        writes += batch->write_count;
        push(&group, batch);
    }
    return group;
}

/* The outcome of a group's commit. */
struct verdict {
    wpk_err err;
    struct wpk_diag diag;
    uint64_t search; /* whose write was refused for a reason of its own; 0: nobody's */
};

static void perform_alone(struct wpk_store_write *write, struct wpk_store *store)
{
    struct wpk_diag diag;
    wpk_store_mark(store);
    write->perform(write, store);
    if (wpk_store_status(store) == WPK_OK) {
        wpk_store_unmark(store);
    } else if (wpk_store_undo(store, &write->err, &diag)) {
        write->diag = WPK_DEMAND(malloc(sizeof *write->diag));
        *write->diag = diag;
    }
}

/* Until one fails, with which all do: the others were made by a state that believed in it. To undo
 * one batch alone a mark before each would do, but costs a copy of every page that two of them
 * change: a quarter more of this thread's time, for what hardly ever happens. */
static bool perform_group(const struct queue *group, struct wpk_store *store, uint64_t *search)
{
    bool begun = false;
    for (const struct wpk_batch *batch = group->first; batch != NULL; batch = batch->next) {
        for (struct wpk_store_write *write = batch->first; write != NULL; write = write->next) {
            if (!begun) {
                wpk_store_begin(store);
                begun = true;
            }
            if (write->alone) {
                perform_alone(write, store);
            } else {
                write->perform(write, store);
            }
            if (wpk_store_status(store) != WPK_OK) {
                *search = wpk_store_is_own(wpk_store_status(store)) ? write->search : 0;
                return true;
            }
        }
    }
    return begun;
}

static void write_group(struct wpk_writer *writer, const struct queue *group,
                        struct verdict *verdict)
{
    uint64_t began_ns = wpk_clock_now_ns(writer->options.clock);
    uint64_t results = 0;
    if (!perform_group(group, writer->options.store, &verdict->search)) {
        verdict->err = wpk_store_beat(writer->options.store, &verdict->diag);
        return; /* output alone, which waited for those before */
    }
    verdict->err = wpk_store_commit(writer->options.store, &verdict->diag);
    wpk_metric_observe_ns(WPK_HISTOGRAM_COMMIT, wpk_clock_now_ns(writer->options.clock) - began_ns);
    for (const struct wpk_batch *batch = group->first; batch != NULL; batch = batch->next) {
        results += batch->result_count;
    }
    if (verdict->err == WPK_OK) {
        wpk_metric_observe_count(WPK_HISTOGRAM_COMMIT_RESULTS, results);
    } else {
        wpk_metric_add(WPK_COUNTER_COMMITS_FAILED, 0, 1);
    }
}

/* With the lock, which is given away while the store works. */
static void work(struct wpk_writer *writer)
{
    struct queue group = take_group(writer);
    struct verdict verdict = {.err = writer->err, .diag = writer->diag};
    if (!writer->failed) {
        pthread_mutex_unlock(&writer->lock);
        write_group(writer, &group, &verdict);
        pthread_mutex_lock(&writer->lock);
    }
    if (verdict.err != WPK_OK && !writer->failed) {
        fail(writer, verdict.err, &verdict.diag);
    }
    struct wpk_batch *batch;
    while ((batch = pop(&group)) != NULL) {
        batch->err = verdict.err;
        batch->diag = verdict.diag;
        batch->search = verdict.search;
        push(&writer->done, batch);
    }
    atomic_fetch_add(&writer->turns, 1);
}

static bool is_probe_due(const struct wpk_writer *writer)
{
    return writer->failed && !writer->healed && now_ns(writer) >= writer->probe_ns;
}

/* With the lock, likewise. */
static void probe(struct wpk_writer *writer)
{
    pthread_mutex_unlock(&writer->lock);
    struct wpk_diag diag = {0};
    wpk_err err = wpk_store_probe(writer->options.store, &diag);
    pthread_mutex_lock(&writer->lock);
    if (err == WPK_ECLOSED || err == WPK_EMISMATCH) { /* batches from now on say so */
        writer->err = err;
        writer->diag = diag;
    }
    writer->healed = err == WPK_OK;
    writer->probe_ns = now_ns(writer) + WPK_WRITER_PROBE_MS * WPK_NS_PER_MS;
    atomic_fetch_add(&writer->turns, 1);
}

/* ---- the thread */

/* Until something waits; while it is out of order, until the next probe. */
static void wait_for_work(struct wpk_writer *writer)
{
    if (!writer->failed || writer->healed) {
        pthread_cond_wait(&writer->work, &writer->lock);
        return;
    }
    const struct timespec until = {.tv_sec = (time_t)(writer->probe_ns / WPK_NS_PER_S),
                                   .tv_nsec = (long)(writer->probe_ns % WPK_NS_PER_S)};
    pthread_cond_timedwait(&writer->work, &writer->lock, &until);
}

static void *run_thread(void *user)
{
    struct wpk_writer *writer = user;
    prctl(PR_SET_NAME, "writer"); /* as /proc and perf show it */
    pthread_mutex_lock(&writer->lock);
    while (!writer->stopping || writer->waiting.first != NULL) {
        /* First: what goes on coming, and fails, must not keep it from finding out. */
        if (is_probe_due(writer) && !writer->stopping) {
            probe(writer);
        } else if (writer->waiting.first != NULL) {
            work(writer);
        } else {
            wait_for_work(writer);
        }
        if (writer->done.first != NULL || writer->healed) {
            pthread_mutex_unlock(&writer->lock);
            writer->options.wake(writer->options.user);
            if (writer->checkpoint != NULL) { /* nobody waits for this but the next transaction */
                wpk_checkpoint_committed(writer->checkpoint,
                                         wpk_store_log_pages(writer->options.store));
            }
            pthread_mutex_lock(&writer->lock);
        }
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* ---- the owner's side */

static wpk_err start_thread(struct wpk_writer *writer, struct wpk_diag *diag)
{
    int code = pthread_create(&writer->thread, NULL, run_thread, writer);
    if (code != 0) {
        return wpk_fail(diag, WPK_ESYSTEM, "no thread for the writer: %s%s", strerror(code),
                        wpk_fs_advice(code));
    }
    writer->running = true;
    return WPK_OK;
}

wpk_err wpk_writer_open(const struct wpk_writer_options *options, struct wpk_writer **out,
                        struct wpk_diag *diag)
{
    struct wpk_writer *writer = WPK_DEMAND(calloc(1, sizeof *writer));
    pthread_condattr_t attributes;
    writer->options = *options;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->work, &attributes);
    pthread_condattr_destroy(&attributes);
    wpk_err err = WPK_OK;
    if (options->threaded && options->directory != NULL) {
        err = wpk_checkpoint_open(options->directory, &writer->checkpoint, diag);
        if (err == WPK_OK) {
            wpk_store_checkpoint_apart(options->store);
        }
    }
    if (err == WPK_OK && options->threaded) {
        err = start_thread(writer, diag);
    }
    if (err != WPK_OK) {
        wpk_writer_free(writer);
        return err;
    }
    *out = writer;
    return WPK_OK;
}

void wpk_writer_close(struct wpk_writer *writer)
{
    if (writer == NULL || !writer->running) {
        return;
    }
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    writer->running = false;
    wpk_checkpoint_close(writer->checkpoint);
    writer->checkpoint = NULL;
}

void wpk_writer_free(struct wpk_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    wpk_writer_close(writer);
    WPK_ASSERT(writer->waiting.first == NULL && writer->done.first == NULL);
    wpk_checkpoint_close(writer->checkpoint); /* when the writer's thread did not start */
    pthread_cond_destroy(&writer->work);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

void wpk_writer_put(struct wpk_writer *writer, struct wpk_batch *batch)
{
    pthread_mutex_lock(&writer->lock);
    push(&writer->waiting, batch);
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
}

struct wpk_batch *wpk_writer_take(struct wpk_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    struct wpk_batch *batch = pop(&writer->done);
    pthread_mutex_unlock(&writer->lock);
    return batch;
}

void wpk_writer_run(struct wpk_writer *writer)
{
    WPK_ASSERT(!writer->options.threaded);
    pthread_mutex_lock(&writer->lock);
    while (writer->waiting.first != NULL) {
        work(writer);
    }
    if (is_probe_due(writer)) {
        probe(writer);
    }
    pthread_mutex_unlock(&writer->lock);
}

void wpk_writer_fail(struct wpk_writer *writer, wpk_err err, const struct wpk_diag *diag)
{
    pthread_mutex_lock(&writer->lock);
    fail(writer, err, diag);
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
}

bool wpk_writer_has_healed(struct wpk_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    bool healed = writer->failed && writer->healed;
    pthread_mutex_unlock(&writer->lock);
    return healed;
}

void wpk_writer_resume(struct wpk_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    WPK_ASSERT(writer->failed && writer->waiting.first == NULL && writer->done.first == NULL);
    writer->failed = false;
    writer->healed = false;
    writer->err = WPK_OK;
    pthread_mutex_unlock(&writer->lock);
}

uint64_t wpk_writer_turns(const struct wpk_writer *writer)
{
    return atomic_load(&writer->turns);
}
