/* SPDX-License-Identifier: Apache-2.0 */
/* A turn of the loop: its batch, from the step that fills it to the release of its output.
 *
 * When a commit fails, the state is ahead of the store and is dropped. A state read from the store
 * takes its place and is only read, until the writer's probe succeeds. Then the state is read from
 * the store once more, and goes on. Each poll reads some of its jobs. A search whose write was
 * refused for a reason of its own is not opened again: its operators fail, and the others go on. */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"
#include "common/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_MAX 8                         /* batches kept for a next use, */
#define SPARE_BYTES_MAX ((size_t)256 << 10) /* of those that have no more memory than this */
#define PENDING_MAX 64                      /* batches that may wait for the writer */
#define PENDING_BYTES_MAX ((size_t)64 << 20)

/* ---- batches */

/* The effects' arena is that of the batch that they go into. */
void wpk_executor_begin_batch(struct wpk_executor *p)
{
    p->batch = p->spare;
    if (p->batch != NULL) {
        p->spare = p->batch->next;
        p->spare_count--;
    } else {
        p->batch = WPK_DEMAND(calloc(1, sizeof *p->batch));
    }
    wpk_batch_reset(p->batch);
}

static void recycle(struct wpk_executor *p, struct wpk_batch *batch)
{
    if (p->spare_count == SPARE_MAX || batch->arena.size_reserved > SPARE_BYTES_MAX) {
        wpk_batch_fini(batch);
        free(batch);
        return;
    }
    wpk_batch_reset(batch);
    batch->next = p->spare;
    p->spare = batch;
    p->spare_count++;
}

/* Tell the writes of a batch how it ended, and send its output, or drop it after a failure. */
static void release(struct wpk_executor *p, struct wpk_batch *batch, wpk_err err,
                    const struct wpk_diag *diag)
{
    wpk_batch_finish(batch, err, diag); /* first: who hears of the batch sees what it published */
    wpk_outbox_release(&batch->outbox, &p->options.out, err, diag);
    recycle(p, batch);
}

/* Hand the batch under way to the writer; output that waits for nothing leaves at once. */
static void seal(struct wpk_executor *p)
{
    struct wpk_batch *batch = p->batch;
    wpk_executor_begin_batch(p);
    if (batch->first == NULL && (p->pending_count == 0 || p->degraded)) {
        release(p, batch, WPK_OK, NULL);
        return;
    }
    p->pending_count++;
    p->pending_bytes += batch->bytes;
    wpk_metric_set(WPK_GAUGE_BATCHES_PENDING, 0, p->pending_count);
    wpk_writer_put(p->writer, batch);
}

/* ---- when the store fails, and when it is well again */

/* While there is the state that knows it by its handle. */
static void remember_broken(struct wpk_executor *p, const struct wpk_batch *failed)
{
    uint32_t count = p->coordinator != NULL ? p->coordinator->search_count : 0;
    for (uint32_t i = 0; i < count && failed->search != 0; i++) {
        const struct wpk_search *search = p->coordinator->searches[i];
        if (search->handle == failed->search) {
            struct wpk_broken *broken = &p->broken[p->broken_count++ % WPK_BROKEN_MAX];
            memcpy(broken->key_hash, search->key_hash, sizeof broken->key_hash);
            snprintf(broken->reason, sizeof broken->reason,
                     "its history cannot be written, until wpkd is started again: %.160s",
                     failed->diag.text);
            wpk_log(WPK_LOG_ERROR, "search_broken", "search=%llu reason=\"%s\"",
                    (unsigned long long)search->id, broken->reason);
        }
    }
}

static void degrade(struct wpk_executor *p, const struct wpk_batch *failed)
{
    struct wpk_diag diag = {0};
    remember_broken(p, failed);
    struct wpk_event drain = {.kind = WPK_EVENT_DRAIN};
    if (p->coordinator != NULL) { /* polls that wait in the state would wait for ever */
        wpk_executor_step_one(p, &drain);
    }
    p->degraded = true;
    p->resuming = false;
    p->err = failed->err;
    p->diag = failed->diag;
    wpk_log_failure(WPK_LOG_ERROR, "store_failed", p->err, &p->diag);
    wpk_metric_set(WPK_GAUGE_STORE_DEGRADED, 0, 1);
    wpk_executor_drop_events(p);
    wpk_search_pool_free(p->pool);
    p->pool = NULL;
    /* The batch under way, not handed to the writer yet, belongs to the same state. */
    wpk_outbox_release(&p->batch->outbox, &p->options.out, p->err, &p->diag);
    wpk_batch_finish(p->batch, p->err, &p->diag);
    wpk_batch_reset(p->batch);
    wpk_err err = wpk_executor_begin_restore(p, &diag);
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_ERROR, "state_not_read", err, &diag);
    } else {
        p->coordinator->halted = true;
    }
}

/* It can be written but not read: as good as before, and no better. */
static void fail_again(struct wpk_executor *p, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_batch failed = {.err = err, .diag = *diag};
    wpk_writer_fail(p->writer, err, diag);
    degrade(p, &failed);
}

static void begin_to_resume(struct wpk_executor *p)
{
    struct wpk_diag diag = {0};
    wpk_writer_resume(p->writer);
    p->resuming = true;
    p->pruning = false;
    wpk_diag_set(&p->diag, "the store can be written again, and its jobs are being read");
    wpk_err err = wpk_executor_new_pool(p, &diag);
    err = err == WPK_OK ? wpk_executor_begin_restore(p, &diag) : err;
    if (err != WPK_OK) {
        fail_again(p, err, &diag);
    }
}

/* Without threads all jobs that are unread; else some, and the loop comes again. */
static void go_on_restoring(struct wpk_executor *p)
{
    bool threaded = p->options.threads > 0;
    while (!wpk_executor_is_restored(p)) {
        struct wpk_diag diag = {0};
        wpk_err err = wpk_executor_restore_some(p, &diag);
        if (err != WPK_OK && p->resuming) {
            fail_again(p, err, &diag);
        } else if (err != WPK_OK) {
            wpk_log_failure(WPK_LOG_ERROR, "state_not_read", err, &diag);
        }
        if (threaded) {
            p->options.wake(p->options.wake_user);
            break;
        }
    }
    if (p->resuming && wpk_executor_is_restored(p)) {
        p->degraded = false;
        p->resuming = false;
        wpk_log(WPK_LOG_INFO, "store_resumed", "jobs=%u", p->coordinator->live_count);
        wpk_metric_set(WPK_GAUGE_STORE_DEGRADED, 0, 0);
        if (p->options.rebuilt != NULL) {
            p->options.rebuilt(p->options.out.user);
        }
    }
}

/* ---- turns */

/* Send the output of durable batches; a failed batch ends the state that it came from. */
static void take_done(struct wpk_executor *p)
{
    struct wpk_batch *batch;
    while ((batch = wpk_writer_take(p->writer)) != NULL) {
        struct wpk_batch failed = {.err = batch->err, .diag = batch->diag, .search = batch->search};
        p->pending_count--;
        p->pending_bytes -= batch->bytes;
        p->released_count++;
        release(p, batch, failed.err, &failed.diag);
        if (failed.err != WPK_OK && wpk_executor_may_write(p)) {
            degrade(p, &failed);
        } else if (failed.err != WPK_OK) {
            p->err = failed.err; /* the reason may be another one by now */
            p->diag = failed.diag;
        }
    }
    wpk_metric_set(WPK_GAUGE_BATCHES_PENDING, 0, p->pending_count);
    if (p->degraded && !p->resuming && p->pending_count == 0 && wpk_writer_has_healed(p->writer)) {
        begin_to_resume(p);
    }
}

void wpk_executor_poll(struct wpk_executor *p)
{
    take_done(p);
    wpk_executor_take_files(p);
    if (p->degraded) {
        go_on_restoring(p);
    }
    if (!p->degraded) {
        wpk_executor_take_answers(p);
        wpk_executor_step_events(p);
    }
}

wpk_err wpk_executor_commit(struct wpk_executor *p, struct wpk_diag *diag)
{
    struct wpk_batch refused = p->refused;
    memset(&p->refused, 0, sizeof p->refused);
    wpk_batch_finish(&refused, p->err, &p->diag);
    if (p->options.threads > 0) {
        if (!wpk_batch_is_empty(p->batch)) {
            seal(p);
        }
    } else {
        if (!p->degraded) {
            wpk_executor_take_answers(p);
        }
        do { /* until nothing is left that one thing brings about after the other */
            seal(p);
            wpk_writer_run(p->writer);
            wpk_executor_poll(p);
        } while (!wpk_batch_is_empty(p->batch));
    }
    return wpk_executor_degraded(p, diag);
}

bool wpk_executor_is_full(const struct wpk_executor *p)
{
    return p->pending_count >= PENDING_MAX || p->fetch_count >= WPK_FETCHES_MAX ||
           p->pending_bytes + p->batch->bytes >= PENDING_BYTES_MAX;
}

/* Give the writer an empty batch, unless it has one that shows as well whether it works. */
void wpk_executor_probe(struct wpk_executor *p)
{
    if (p->pending_count > 0) {
        return;
    }
    struct wpk_batch *batch = p->batch;
    wpk_executor_begin_batch(p);
    p->pending_count++;
    p->pending_bytes += batch->bytes;
    wpk_writer_put(p->writer, batch);
}

uint64_t wpk_executor_given(const struct wpk_executor *p)
{
    return p->released_count + p->pending_count;
}

uint64_t wpk_executor_released(const struct wpk_executor *p)
{
    return p->released_count;
}

uint64_t wpk_executor_commits(const struct wpk_executor *p)
{
    return wpk_writer_turns(p->writer);
}

/* ---- the end */

void wpk_executor_end(struct wpk_executor *p)
{
    struct wpk_diag ended = {.text = "wpkd is ending"};
    struct wpk_batch *batch;
    wpk_writer_close(p->writer);
    while (p->writer != NULL && (batch = wpk_writer_take(p->writer)) != NULL) {
        wpk_outbox_release(&batch->outbox, &p->options.out, batch->err, &batch->diag);
        wpk_batch_finish(batch, batch->err, &batch->diag);
        wpk_batch_fini(batch);
        free(batch);
    }
    wpk_writer_free(p->writer);
    wpk_outbox_release(&p->batch->outbox, &p->options.out, WPK_ECLOSED, &ended);
    wpk_batch_finish(p->batch, WPK_ECLOSED, &ended);
    wpk_batch_finish(&p->refused, WPK_ECLOSED, &ended);
}
