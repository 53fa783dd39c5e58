/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, ticks and events of requests come in here and are stepped. While the executor is degraded
 * nothing is stepped: workers, and clients that want something changed, are told to try again. */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"
#include "common/metrics.h"
#include "coordinator/access/auth.h"
#include "coordinator/index/misses.h"

#include <stdlib.h>
#include <string.h>

#define FILE_THREADS 4 /* each waits for two syncs a file */

/* Admission of workers. The sessions of a token end when the token is revoked or expires. */

#define RECHECK_MS 1000

#define MISSES_NS (10 * WPK_NS_PER_S) /* after a write of many misses, until the next one */
#define MISSES_FEW 16

/* True if the worker may join: it is local, where the socket's file decides who may connect, or its
 * token is good. If not, `diag` says why. */
static bool may_join(const struct wpk_executor *p, const struct wpk_net_address *address,
                     const struct wpk_hello *hello, struct wpk_diag *diag)
{
    struct wpk_identity identity;
    uint64_t wall_ns = wpk_clock_wall_ns(p->options.clock);
    if (p->options.auth == NULL || address->is_local ||
        wpk_worker_auth_check(p->options.auth, hello, wall_ns, &identity, diag) == WPK_OK) {
        return true;
    }
    if (p->options.refused != NULL) {
        p->options.refused(p->options.out.user, address, &identity, diag->text);
    }
    return false;
}

/* Why the worker's token is good no more; NULL: it is, or it needs none. */
static const char *token_fault(const struct wpk_executor *p, const struct wpk_worker *worker)
{
    if (p->options.auth == NULL || worker->is_local) {
        return NULL;
    }
    return wpk_auth_fault(p->options.auth, worker->token_hash, wpk_clock_wall_ns(p->options.clock));
}

void wpk_executor_recheck_workers(struct wpk_executor *p)
{
    if (p->degraded || p->options.auth == NULL) {
        return;
    }
    p->recheck_ns = wpk_executor_now_ns(p) + RECHECK_MS * WPK_NS_PER_MS;
    for (uint32_t i = 0; i < p->coordinator->worker_count; i++) {
        const struct wpk_worker *worker = p->coordinator->workers[i];
        struct wpk_event event = {.kind = WPK_EVENT_WORKER_END,
                                  .session = worker->session,
                                  .fault = token_fault(p, worker)};
        if (event.fault != NULL) {
            wpk_executor_follow_up(p, &event);
        }
    }
}

/* True if the token of the message's session is still good. If not, the session is ended, and
 * `diag` says why. */
static bool may_go_on(struct wpk_executor *p, const struct wpk_message *message,
                      struct wpk_diag *diag)
{
    const struct wpk_worker *worker =
        message->kind != WPK_MESSAGE_HELLO
            ? wpk_coordinator_find_session(p->coordinator, message->session)
            : NULL;
    const char *fault = worker != NULL ? token_fault(p, worker) : NULL;
    if (fault != NULL) {
        struct wpk_event event = {
            .kind = WPK_EVENT_WORKER_END, .session = message->session, .fault = fault};
        wpk_executor_step_one(p, &event);
        wpk_diag_set(diag, "%s", fault);
    }
    return fault == NULL;
}

struct misses_write {
    struct wpk_effect_write effect; /* first */
    struct wpk_miss *misses;        /* owned; [count] */
    uint32_t count;
};

static void perform_misses(struct wpk_store_write *write, struct wpk_store *store)
{
    struct misses_write *of = (struct misses_write *)write;
    wpk_misses_write(store, of->effect.executor->options.index, of->misses, of->count);
}

/* Lookups that a full disk does not take are not counted. */
static void on_misses(struct wpk_store_write *write, wpk_err err WPK_UNUSED,
                      const struct wpk_diag *diag WPK_UNUSED)
{
    struct misses_write *of = (struct misses_write *)write;
    for (uint32_t i = 0; i < of->count; i++) {
        wpk_miss_fini(&of->misses[i]);
    }
    free(of->misses);
    of->effect.executor->writes_misses = false;
}

static void write_misses(struct wpk_executor *p)
{
    uint32_t count;
    uint64_t now_ns = wpk_executor_now_ns(p);
    bool waits = p->writes_misses || wpk_executor_is_full(p) || now_ns < p->misses_ns;
    struct wpk_miss *misses =
        waits ? NULL : wpk_misses_take(wpk_index_misses(p->options.index), &count);
    if (misses != NULL) {
        p->writes_misses = true;
        p->misses_ns = count < MISSES_FEW ? 0 : now_ns + MISSES_NS;
        struct misses_write *write =
            wpk_executor_new_write(p, sizeof *write, perform_misses, on_misses);
        write->misses = misses;
        write->count = count;
    }
}

static void tick(struct wpk_executor *p)
{
    if (p->options.index != NULL) {
        write_misses(p);
    }
    if (wpk_executor_now_ns(p) >= p->recheck_ns) {
        wpk_executor_recheck_workers(p);
        wpk_executor_step_events(p);
    }
    if (p->options.artifact_bytes_max > 0) {
        wpk_executor_prune(p);
    }
}

void wpk_executor_step(struct wpk_executor *p, struct wpk_event *event)
{
    if (!p->degraded) {
        wpk_executor_step_one(p, event);
        if (event->kind == WPK_EVENT_TICK) {
            tick(p);
        }
        return;
    }
    if (event->kind == WPK_EVENT_SUBMIT || event->kind == WPK_EVENT_RESTORE) {
        wpk_job_entry_free(event->job);
    }
    if (event->request != 0) {
        struct wpk_api_answer answer = {0};
        wpk_api_problem(&answer, 507, p->err, &p->diag);
        wpk_executor_answer(p, event->request, &answer);
    }
}

/* True if the message may be stepped; if not, its worker was told why. */
static bool admit(struct wpk_executor *p, const struct wpk_net_address *address,
                  struct wpk_message *message)
{
    struct wpk_diag diag = {0};
    wpk_err err = WPK_EACCES;
    if (message->kind == WPK_MESSAGE_HELLO && !may_join(p, address, message->hello, &diag)) {
        wpk_log(WPK_LOG_WARN, "worker_refused", "worker=%s reason=\"%s\"", message->hello->name,
                diag.text);
    } else if (p->degraded) {
        wpk_executor_refuse(p, address, p->err, &p->diag);
        return false;
    } else if (may_go_on(p, message, &diag)) {
        wpk_executor_trace(p, "received", message);
        /* If it cannot be said what is there, the worker asks again. */
        err = wpk_executor_forget_absent(p, message, &diag);
    }
    if (err != WPK_OK) {
        wpk_executor_reply_error(p, address, message->session, err, &diag);
    }
    return err == WPK_OK;
}

void wpk_executor_frame(struct wpk_executor *p, const struct wpk_net_address *address,
                        const char *frame, size_t size, uint64_t random)
{
    struct wpk_diag diag = {0};
    struct wpk_message message = {0};
    wpk_err err = wpk_message_decode(frame, size, &message, &diag);
    wpk_metric_add(WPK_COUNTER_FRAMES, 0, 1);
    if (err != WPK_OK) {
        wpk_metric_add(WPK_COUNTER_FRAMES_REFUSED, 0, 1);
        wpk_log_failure(WPK_LOG_WARN, "bad_message", err, &diag);
        wpk_executor_reply_error(p, address, 0, err, &diag);
        return;
    }
    if (admit(p, address, &message)) {
        struct wpk_event event = {
            .kind = WPK_EVENT_MESSAGE, .random = random, .address = *address, .message = &message};
        wpk_executor_step_one(p, &event);
        p->batch->bytes += size;
        if (message.kind == WPK_MESSAGE_RESULTS) {
            wpk_batch_keep(p->batch, &message); /* writes point to its records */
        }
    }
    wpk_message_fini(&message);
}

/* ---- life */

static wpk_err open_parts(struct wpk_executor *p, struct wpk_diag *diag)
{
    struct wpk_writer_options options = {.store = p->options.store,
                                         .clock = p->options.clock,
                                         .directory = p->options.data_dir,
                                         .threaded = p->options.threads > 0,
                                         .wake = p->options.wake,
                                         .user = p->options.wake_user};
    wpk_err err = WPK_OK;
    wpk_effects_init(&p->effects);
    if (p->options.threads > 0) {
        err = wpk_store_open_reader(p->options.data_dir, p->options.clock, &p->reader, diag);
    } else {
        p->reader = p->options.store;
    }
    err = err == WPK_OK ? wpk_writer_open(&options, &p->writer, diag) : err;
    const struct wpk_file_pool_options files = {.data_dir = p->options.data_dir,
                                                .threads =
                                                    p->options.threads > 0 ? FILE_THREADS : 0,
                                                .wake = p->options.wake,
                                                .user = p->options.wake_user};
    err = err == WPK_OK ? wpk_file_pool_open(&files, &p->files, diag) : err;
    return err == WPK_OK ? wpk_executor_new_pool(p, diag) : err;
}

wpk_err wpk_executor_new(const struct wpk_executor_options *options, struct wpk_executor **out,
                         struct wpk_diag *diag)
{
    struct wpk_executor *p = WPK_DEMAND(calloc(1, sizeof *p));
    WPK_ASSERT(options->threads == 0 || options->wake != NULL);
    p->options = *options;
    wpk_executor_begin_batch(p);
    wpk_err err = open_parts(p, diag);
    err = err == WPK_OK ? wpk_executor_begin_restore(p, diag) : err;
    while (err == WPK_OK && !wpk_executor_is_restored(p)) {
        err = wpk_executor_restore_some(p, diag);
        if (options->restoring != NULL) {
            options->restoring(options->out.user);
        }
    }
    err = err == WPK_OK ? wpk_executor_commit(p, diag) : err;
    if (err != WPK_OK) {
        wpk_executor_free(p);
        return err;
    }
    *out = p;
    return WPK_OK;
}

void wpk_executor_free(struct wpk_executor *p)
{
    if (p == NULL) {
        return;
    }
    wpk_executor_end(p);
    wpk_executor_end_files(p);
    wpk_search_pool_free(p->pool);
    wpk_executor_drop_events(p);
    free(p->events);
    wpk_batch_fini(p->batch);
    free(p->batch);
    while (p->spare != NULL) {
        struct wpk_batch *batch = p->spare;
        p->spare = batch->next;
        wpk_batch_fini(batch);
        free(batch);
    }
    wpk_coordinator_free(p->coordinator);
    memset(&p->effects.arena, 0, sizeof p->effects.arena); /* the batch's */
    wpk_effects_fini(&p->effects);
    if (p->reader != p->options.store) {
        wpk_store_close(p->reader);
    }
    free(p);
}
