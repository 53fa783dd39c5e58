/* SPDX-License-Identifier: Apache-2.0 */
/* What comes in, a frame or a request or a tick, is stepped, and the effects of the step are handed
 * to those who perform them. While the store is out of order nothing is stepped: workers, and
 * whoever wants something changed, are told to try again. */
#include "coordinator/effects/performer_parts.h"

#include "common/log.h"
#include "common/metrics.h"

#include <stdlib.h>
#include <string.h>

uint64_t wpk_performer_now_ns(const struct wpk_performer *p)
{
    return wpk_clock_now_ns(p->options.clock);
}

/* ---- orders */

void *wpk_performer_write(struct wpk_performer *p, size_t size,
                          void (*perform)(struct wpk_order *order, struct wpk_store *store),
                          void (*done)(struct wpk_order *order, wpk_err err,
                                       const struct wpk_diag *diag))
{
    struct wpk_effect_order *effect = wpk_batch_memory(p->batch, size);
    effect->order.perform = perform;
    effect->order.done = done;
    effect->performer = p;
    effect->generation = p->generation;
    wpk_batch_add(p->batch, &effect->order);
    return effect;
}

bool wpk_performer_is_current(const struct wpk_order *order, wpk_err err)
{
    const struct wpk_effect_order *effect = (const struct wpk_effect_order *)order;
    return err == WPK_OK && effect->generation == effect->performer->generation;
}

void wpk_performer_order(struct wpk_performer *p, struct wpk_order *order)
{
    WPK_ASSERT(order->perform != NULL && order->done != NULL);
    /* A degraded store takes none; answers that were only read do not fail with it. */
    wpk_batch_add(p->degraded ? &p->refused : p->batch, order);
}

/* ---- out */

void wpk_performer_reply(struct wpk_performer *p, const struct wpk_net_address *address,
                         const struct wpk_message *message)
{
    struct wpk_outbox now = {0};
    wpk_outbox_reply(&now, address, message);
    wpk_outbox_release(&now, &p->options.out, WPK_OK, NULL);
}

void wpk_performer_reply_error(struct wpk_performer *p, const struct wpk_net_address *address,
                               uint64_t session, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_ERROR,
                                  .session = session,
                                  .err = err,
                                  .text = diag->text[0] != '\0' ? diag->text : wpk_err_text(err)};
    wpk_performer_reply(p, address, &message);
}

void wpk_performer_answer(struct wpk_performer *p, uint64_t request, struct wpk_api_answer *answer)
{
    p->options.out.respond(p->options.out.user, request, answer);
    wpk_api_answer_fini(answer);
}

static struct wpk_api make_api(const struct wpk_performer *p, uint64_t random)
{
    return (struct wpk_api){.coordinator = p->coordinator,
                            .performer = (struct wpk_performer *)(uintptr_t)p,
                            .index = p->options.index,
                            .auth = p->options.auth,
                            .store = p->reader,
                            .data_dir = p->options.data_dir,
                            .now_ns = wpk_performer_now_ns(p),
                            .random = random};
}

static void respond(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct wpk_api_answer *answer = wpk_outbox_answer(&p->batch->outbox, effect->request);
    struct wpk_api api = make_api(p, 0);
    struct wpk_diag diag = {0};
    if (effect->kind == WPK_EFFECT_RESPOND_JOB) {
        wpk_api_job(answer, &api, effect->status, effect->job->id);
        return;
    }
    if (effect->kind == WPK_EFFECT_RESPOND_WORKER) {
        wpk_api_worker_order(answer, effect->status, effect->text, effect->order, effect->detail);
        return;
    }
    wpk_diag_set(&diag, "%s", effect->text);
    wpk_api_problem(answer, effect->status, effect->err, &diag);
    answer->retry_after_s = effect->retry_after_s;
}

/* ---- effects */

static void perform(struct wpk_performer *p, const struct wpk_effect *effect)
{
    switch (effect->kind) {
    case WPK_EFFECT_REPLY:
        wpk_performer_trace(p, "leased", effect->message);
        wpk_outbox_reply(&p->batch->outbox, &effect->address, effect->message);
        break;
    case WPK_EFFECT_RESPOND_JOB:
    case WPK_EFFECT_RESPOND_WORKER:
    case WPK_EFFECT_RESPOND_PROBLEM:
        respond(p, effect);
        break;
    case WPK_EFFECT_OPEN_SEARCH:
        wpk_performer_open_search(p, effect);
        break;
    case WPK_EFFECT_PUT_PLAIN:
        wpk_performer_put_plain(p, effect);
        break;
    case WPK_EFFECT_PUT_KERNEL:
        wpk_performer_put_kernel(p, effect);
        break;
    case WPK_EFFECT_PUT_ARTIFACT:
        wpk_performer_put_artifact(p, effect);
        break;
    case WPK_EFFECT_GET_ARTIFACT:
        wpk_performer_get_artifact(p, effect);
        break;
    case WPK_EFFECT_ASK:
        wpk_search_pool_ask(p->pool, effect->search, effect->count);
        break;
    case WPK_EFFECT_TELL:
        wpk_performer_tell(p, effect);
        break;
    case WPK_EFFECT_CLOSE_SEARCH:
        wpk_search_pool_close(p->pool, effect->handle);
        break;
    case WPK_EFFECT_WARN:
        wpk_log(WPK_LOG_WARN, effect->text, "%s", effect->detail);
        break;
    case WPK_EFFECT_LOG:
        wpk_log(WPK_LOG_INFO, effect->text, "%s", effect->detail);
        break;
    default:
        WPK_ASSERT(wpk_performer_store(p, effect));
    }
}

void wpk_performer_step_one(struct wpk_performer *p, struct wpk_event *event)
{
    event->now_ns = wpk_performer_now_ns(p);
    event->wall_ns = wpk_clock_wall_ns(p->options.clock);
    p->opening = event->kind == WPK_EVENT_OPENED;
    /* What the step allocates for its effects lives as long as the batch that they are in. */
    p->effects.arena = p->batch->arena;
    wpk_coordinator_step(p->coordinator, event, &p->effects);
    p->batch->arena = p->effects.arena;
    for (uint32_t i = 0; i < p->effects.count && !p->degraded; i++) {
        perform(p, &p->effects.items[i]);
    }
}

/* ---- events */

void wpk_performer_follow_up(struct wpk_performer *p, const struct wpk_event *event)
{
    if (p->event_count == p->event_capacity) {
        p->event_capacity = p->event_capacity == 0 ? 64 : p->event_capacity * 2;
        struct wpk_event *grown = realloc(p->events, p->event_capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        p->events = grown;
    }
    p->events[p->event_count++] = *event;
}

static void free_event(struct wpk_event *event)
{
    wpk_opened_free(event->opened);
    wpk_asked_free(event->asked);
    free(event->kernel);
}

void wpk_performer_step_events(struct wpk_performer *p)
{
    for (uint32_t i = 0; i < p->event_count; i++) {
        struct wpk_event event = p->events[i]; /* the array may move */
        wpk_performer_step_one(p, &event);
        free_event(&event);
    }
    p->event_count = 0;
}

void wpk_performer_drop_events(struct wpk_performer *p)
{
    for (uint32_t i = 0; i < p->event_count; i++) {
        free_event(&p->events[i]);
    }
    p->event_count = 0;
}

void wpk_performer_change_kernel(struct wpk_performer *p, const struct wpk_kernel_event *change)
{
    struct wpk_event event = {.kind = WPK_EVENT_KERNEL_CHANGED};
    if (p->degraded) {
        return; /* what is read from the store knows it */
    }
    event.kernel = malloc(sizeof *event.kernel);
    WPK_ASSERT(event.kernel != NULL);
    *event.kernel = *change;
    wpk_performer_follow_up(p, &event);
}

static void tick(struct wpk_performer *p)
{
    if (wpk_performer_now_ns(p) >= p->recheck_ns) {
        wpk_performer_recheck_workers(p);
        wpk_performer_step_events(p);
    }
    if (p->options.artifact_bytes_max > 0) {
        wpk_performer_prune(p);
    }
}

void wpk_performer_step(struct wpk_performer *p, struct wpk_event *event)
{
    if (!p->degraded) {
        wpk_performer_step_one(p, event);
        if (event->kind == WPK_EVENT_TICK) {
            tick(p);
        }
        return;
    }
    wpk_job_entry_free(event->job);
    if (event->request != 0) {
        struct wpk_api_answer answer = {0};
        wpk_api_problem(&answer, 507, p->err, &p->diag);
        wpk_performer_answer(p, event->request, &answer);
    }
}

void wpk_performer_frame(struct wpk_performer *p, const struct wpk_net_address *address,
                         const char *frame, size_t size, uint64_t random)
{
    struct wpk_diag diag = {0};
    struct wpk_message message = {0};
    struct wpk_net_address answer_to = *address;
    wpk_err err = wpk_message_decode(frame, size, &message, &diag);
    answer_to.tag = err == WPK_OK ? message.version : WPK_PROTOCOL_VERSION_MIN;
    wpk_metric_add(WPK_COUNTER_FRAMES, 0, 1);
    if (err != WPK_OK) {
        wpk_metric_add(WPK_COUNTER_FRAMES_REFUSED, 0, 1);
        wpk_log_failure(WPK_LOG_WARN, "bad_message", err, &diag);
        wpk_performer_reply_error(p, &answer_to, 0, err, &diag);
        return;
    }
    if (message.kind == WPK_MESSAGE_HELLO &&
        !wpk_performer_may_join(p, address, message.hello, &diag)) {
        wpk_log(WPK_LOG_WARN, "worker_refused", "worker=%s reason=\"%s\"", message.hello->name,
                diag.text);
        wpk_performer_reply_error(p, &answer_to, 0, WPK_EACCES, &diag);
        wpk_message_fini(&message);
        return;
    }
    if (p->degraded) {
        wpk_performer_refuse(p, &answer_to, p->err, &p->diag);
        wpk_message_fini(&message);
        return;
    }
    if (!wpk_performer_may_go_on(p, &message, &diag)) {
        wpk_performer_reply_error(p, &answer_to, message.session, WPK_EACCES, &diag);
        wpk_message_fini(&message);
        return;
    }
    wpk_performer_trace(p, "received", &message);
    err = wpk_performer_forget_absent(p, &message, &diag);
    if (err != WPK_OK) { /* it cannot be said what is there: the worker asks again */
        wpk_performer_reply_error(p, &answer_to, message.session, err, &diag);
        wpk_message_fini(&message);
        return;
    }
    struct wpk_event event = {
        .kind = WPK_EVENT_MESSAGE, .random = random, .address = answer_to, .message = &message};
    wpk_performer_step_one(p, &event);
    p->batch->bytes += size;
    if (message.kind == WPK_MESSAGE_RESULTS) {
        wpk_batch_keep(p->batch, &message); /* orders point to its records */
    }
    wpk_message_fini(&message);
}

void wpk_performer_request(struct wpk_performer *p, const struct wpk_http_request *request,
                           uint64_t random)
{
    struct wpk_api api = make_api(p, random);
    struct wpk_api_answer answer;
    struct wpk_diag diag = {0};
    wpk_api_serve(&api, request, &answer);
    if (answer.how != WPK_API_NOW) {
        wpk_api_answer_fini(&answer);
        return;
    }
    wpk_err err = wpk_store_take_status(p->reader, &diag);
    if (err != WPK_OK) {
        wpk_api_answer_fini(&answer);
        memset(&answer, 0, sizeof answer);
        wpk_api_problem(&answer, 507, err, &diag);
    }
    *wpk_outbox_answer(&p->batch->outbox, request->id) = answer;
}

/* ---- life */

const struct wpk_coordinator *wpk_performer_coordinator(const struct wpk_performer *p)
{
    return p->coordinator;
}

static wpk_err open_parts(struct wpk_performer *p, struct wpk_diag *diag)
{
    struct wpk_writer_options options = {.store = p->options.store,
                                         .clock = p->options.clock,
                                         .directory = p->options.data_dir,
                                         .threaded = p->options.threads > 0,
                                         .wake = p->options.wake,
                                         .user = p->options.wake_user};
    wpk_err err = wpk_effects_init(&p->effects);
    if (err == WPK_OK && p->options.threads > 0) {
        err = wpk_store_open_reader(p->options.data_dir, p->options.clock, &p->reader, diag);
    } else {
        p->reader = p->options.store;
    }
    if (err == WPK_OK) {
        err = wpk_writer_open(&options, &p->writer, diag);
    }
    return err == WPK_OK ? wpk_performer_new_pool(p, diag) : err;
}

wpk_err wpk_performer_new(const struct wpk_performer_options *options, struct wpk_performer **out,
                          struct wpk_diag *diag)
{
    struct wpk_performer *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return WPK_ENOMEM;
    }
    WPK_ASSERT(options->threads == 0 || options->wake != NULL);
    p->options = *options;
    wpk_performer_begin_batch(p);
    wpk_err err = open_parts(p, diag);
    if (err == WPK_OK) {
        err = wpk_performer_restore(p, diag);
    }
    if (err == WPK_OK) {
        err = wpk_performer_commit(p, diag);
    }
    if (err != WPK_OK) {
        wpk_performer_free(p);
        return err;
    }
    *out = p;
    return WPK_OK;
}

void wpk_performer_free(struct wpk_performer *p)
{
    if (p == NULL) {
        return;
    }
    wpk_performer_end(p);
    wpk_search_pool_free(p->pool);
    wpk_performer_drop_events(p);
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
