/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/performer.h"

#include "common/log.h"
#include "coordinator/admission.h"
#include "coordinator/artifact.h"
#include "coordinator/document.h"
#include "coordinator/outbox.h"
#include "coordinator/search_actor.h"
#include "coordinator/submission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct actor {
    uint64_t handle;
    struct wpk_search_actor *actor;
};

struct wpk_performer {
    struct wpk_performer_options options;
    struct wpk_coordinator *coordinator;
    struct wpk_effects effects;
    struct wpk_event *follow_ups; /* owned; [follow_up_count]: of the step under way, in order */
    uint32_t follow_up_count;
    uint32_t follow_up_capacity;
    struct actor *actors; /* owned; [actor_count] */
    uint32_t actor_count;
    uint32_t actor_capacity;
    struct wpk_outbox outbox;
    struct wpk_order *order_first; /* performed in this batch: not done yet */
    struct wpk_order *order_last;
    bool in_batch;
};

/* ---- effects */

static void begin(struct wpk_performer *p)
{
    if (!p->in_batch) {
        p->in_batch = true;
        wpk_store_begin(p->options.store);
    }
}

static uint64_t now_ns(const struct wpk_performer *p)
{
    return wpk_clock_now_ns(p->options.clock);
}

static void follow_up(struct wpk_performer *p, const struct wpk_event *event)
{
    if (p->follow_up_count == p->follow_up_capacity) {
        p->follow_up_capacity = p->follow_up_capacity == 0 ? 64 : p->follow_up_capacity * 2;
        struct wpk_event *grown = realloc(p->follow_ups, p->follow_up_capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        p->follow_ups = grown;
    }
    p->follow_ups[p->follow_up_count++] = *event;
}

static struct wpk_search_actor *find_actor(struct wpk_performer *p, uint64_t handle)
{
    for (uint32_t i = 0; i < p->actor_count; i++) {
        if (p->actors[i].handle == handle) {
            return p->actors[i].actor;
        }
    }
    return NULL;
}

static wpk_err make_actor(struct wpk_performer *p, const struct wpk_search *search,
                          struct wpk_search_actor **out, struct wpk_diag *diag)
{
    *out = find_actor(p, search->handle);
    if (*out != NULL) {
        return WPK_OK;
    }
    struct wpk_piece *asks = NULL;
    uint32_t count = 0;
    wpk_history_asks(p->options.store, search->id, &asks, &count);
    wpk_err err = wpk_search_actor_new(search, asks, count, out, diag);
    wpk_pieces_free(asks, count);
    if (err != WPK_OK) {
        return err;
    }
    if (p->actor_count == p->actor_capacity) {
        p->actor_capacity = p->actor_capacity == 0 ? 16 : p->actor_capacity * 2;
        struct actor *grown = realloc(p->actors, p->actor_capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        p->actors = grown;
    }
    p->actors[p->actor_count++] = (struct actor){search->handle, *out};
    return WPK_OK;
}

static void close_actor(struct wpk_performer *p, uint64_t handle)
{
    for (uint32_t i = 0; i < p->actor_count; i++) {
        if (p->actors[i].handle == handle) {
            wpk_search_actor_free(p->actors[i].actor);
            p->actors[i] = p->actors[--p->actor_count];
            return;
        }
    }
}

/* Record what was asked; what history knows already needs no worker. */
static void record_asks(struct wpk_performer *p, const struct wpk_search *search, char **texts,
                        uint32_t count, struct wpk_asked *asked)
{
    char provider[WPK_PROVIDER_NAME_MAX];
    snprintf(provider, sizeof provider, "%.*s", (int)strcspn(search->key.providers, ";"),
             search->key.providers);
    asked->items = calloc(count + 1, sizeof *asked->items);
    WPK_ASSERT(asked->items != NULL);
    asked->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct wpk_piece *item = &asked->items[i];
        struct wpk_history_ask ask = {.search_id = search->id,
                                      .problem_id = search->problem_id,
                                      .number = search->ask_count + i,
                                      .provider = provider,
                                      .candidate = texts[i]};
        item->text = texts[i];
        item->known = wpk_history_put_ask(p->options.store, &ask, &item->trial);
        item->standing = item->known ? WPK_STANDING_ENDED : WPK_STANDING_OPEN;
    }
}

static void ask(struct wpk_performer *p, const struct wpk_effect *effect)
{
    char *texts[WPK_ASKED_MAX];
    uint32_t filled = 0;
    struct wpk_diag diag = {0};
    struct wpk_search_actor *actor = NULL;
    struct wpk_asked *asked = calloc(1, sizeof *asked);
    WPK_ASSERT(asked != NULL && effect->count <= WPK_ASKED_MAX);
    begin(p);
    asked->err = make_actor(p, effect->search, &actor, &diag);
    if (asked->err == WPK_OK) {
        asked->size_log2 = wpk_search_actor_size_log2(actor);
        wpk_err err = wpk_search_actor_ask(actor, effect->count, texts, &filled);
        asked->exhausted = err == WPK_EEXHAUSTED;
        asked->refused = err == WPK_OK && filled == 0;
        asked->err = asked->exhausted ? WPK_OK : err;
    }
    record_asks(p, effect->search, texts, filled, asked);
    snprintf(asked->reason, sizeof asked->reason, "%.255s",
             diag.text[0] != '\0' ? diag.text : wpk_err_text(asked->err));
    follow_up(p, &(struct wpk_event){
                     .kind = WPK_EVENT_ASKED, .handle = effect->search->handle, .asked = asked});
}

static bool is_lost(struct wpk_performer *p, const char *sha256)
{
    struct wpk_buf bytes = {0};
    bool lost =
        sha256[0] != '\0' && wpk_artifact_get(p->options.data_dir, sha256, &bytes, NULL) != WPK_OK;
    wpk_buf_fini(&bytes);
    if (lost) {
        wpk_log(WPK_LOG_WARN, "artifact_lost", "sha256=%s", sha256);
    }
    return lost;
}

/* What was lost or damaged with its file is none: the search ends once more, and makes it anew. */
static void forget_lost(struct wpk_performer *p, struct wpk_opened *opened)
{
    if (is_lost(p, opened->own_artifact)) {
        opened->kernel_id = 0;
    }
    if (is_lost(p, opened->served_artifact)) {
        opened->served_kernel_id = 0;
        opened->served_provider[0] = '\0';
        opened->served_artifact[0] = '\0';
    }
}

static void open_search(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    WPK_ASSERT(opened != NULL);
    begin(p);
    wpk_history_open_search(p->options.store, effect->search, opened);
    forget_lost(p, opened);
    follow_up(p, &(struct wpk_event){
                     .kind = WPK_EVENT_OPENED, .handle = effect->search->handle, .opened = opened});
}

static void put_kernel(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct wpk_buf document = {0};
    struct wpk_diag diag = {0};
    begin(p);
    wpk_err err = wpk_document_kernel(p->options.store, effect, &document);
    if (err != WPK_OK) {
        wpk_diag_set(&diag, "a kernel's document: %s", wpk_err_text(err));
        wpk_store_fail(p->options.store, err, &diag);
    }
    uint64_t id = wpk_history_put_kernel(p->options.store, effect->search, effect->served,
                                         wpk_buf_text(&document), effect->serve);
    wpk_buf_fini(&document);
    if (p->options.index != NULL) {
        wpk_performer_order(p, wpk_index_order_new(p->options.index, effect->search->problem_id));
    }
    follow_up(p, &(struct wpk_event){.kind = WPK_EVENT_KERNEL_PUT,
                                     .handle = effect->search->handle,
                                     .kernel_id = id});
}

/* The document of a job that has ended is the last that is said of it from the state. */
static void set_job(struct wpk_performer *p, const struct wpk_job_entry *job)
{
    struct wpk_buf document = {0};
    struct wpk_diag diag = {0};
    begin(p);
    if (job->finished_wall_ns != 0) {
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_document_job(w, NULL, job, now_ns(p), job->finished_wall_ns);
        wpk_err err = wpk_json_print(w, false, &document);
        wpk_json_writer_free(w);
        if (err != WPK_OK) {
            wpk_diag_set(&diag, "a job's document: %s", wpk_err_text(err));
            wpk_store_fail(p->options.store, err, &diag);
        }
    }
    wpk_history_set_job(p->options.store, job, wpk_buf_text(&document));
    wpk_coordinator_job_stored(p->coordinator, job->number);
    wpk_buf_fini(&document);
}

static void put_artifact(struct wpk_performer *p, const struct wpk_effect *effect)
{
    const struct wpk_message *message = effect->message;
    struct wpk_diag diag = {0};
    begin(p);
    wpk_err err = wpk_artifact_put(p->options.data_dir, message->sha256, message->bytes,
                                   message->bytes_size, &diag);
    if (err == WPK_ECORRUPT) {
        wpk_outbox_error(&p->outbox, &effect->address, message->session, err, &diag);
        return;
    }
    if (err != WPK_OK) {
        wpk_store_fail(p->options.store, err, &diag);
        return;
    }
    wpk_history_put_artifact(p->options.store, message->sha256, message->bytes_size);
    struct wpk_message ack = {.kind = WPK_MESSAGE_ACK, .session = message->session};
    wpk_outbox_reply(&p->outbox, &effect->address, &ack);
}

static void get_artifact(struct wpk_performer *p, const struct wpk_effect *effect)
{
    const struct wpk_message *asked = effect->message;
    struct wpk_diag diag = {0};
    struct wpk_buf bytes = {0};
    wpk_err err = wpk_artifact_get(p->options.data_dir, asked->sha256, &bytes, &diag);
    if (err != WPK_OK) {
        wpk_outbox_error(&p->outbox, &effect->address, asked->session,
                         err == WPK_ENOENT ? WPK_ECORRUPT : err, &diag);
    } else {
        struct wpk_message message = {.kind = WPK_MESSAGE_ARTIFACT,
                                      .session = asked->session,
                                      .bytes = bytes.data,
                                      .bytes_size = bytes.size};
        memcpy(message.sha256, asked->sha256, sizeof message.sha256);
        wpk_outbox_reply(&p->outbox, &effect->address, &message);
    }
    wpk_buf_fini(&bytes);
}

static struct wpk_api make_api(const struct wpk_performer *p, uint64_t random)
{
    return (struct wpk_api){.coordinator = p->coordinator,
                            .performer = (struct wpk_performer *)(uintptr_t)p,
                            .index = p->options.index,
                            .auth = p->options.auth,
                            .store = p->options.store,
                            .data_dir = p->options.data_dir,
                            .now_ns = now_ns(p),
                            .random = random};
}

static void respond(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct wpk_api_answer *answer = wpk_outbox_answer(&p->outbox, effect->request);
    if (effect->kind == WPK_EFFECT_RESPOND_JOB) {
        struct wpk_api api = make_api(p, 0);
        wpk_api_job(answer, &api, effect->status, effect->job->id);
    } else if (effect->kind == WPK_EFFECT_RESPOND_WORKER) {
        wpk_api_worker_order(answer, effect->status, effect->text, effect->order, effect->detail);
    } else {
        struct wpk_diag diag = {0};
        wpk_diag_set(&diag, "%s", effect->text);
        wpk_api_problem(answer, effect->status, effect->err, &diag);
        answer->retry_after_s = effect->retry_after_s;
    }
}

static struct wpk_history_worker name_worker(const struct wpk_effect *effect)
{
    struct wpk_history_worker worker = {0};
    if (effect->worker != NULL) {
        worker.name = effect->worker->hello.name;
        worker.instance = effect->worker->hello.device.instance;
    }
    return worker;
}

static void put_trial(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct wpk_history_result result = {.problem_id = effect->search->problem_id,
                                        .work = effect->work,
                                        .provider = effect->provider,
                                        .record = effect->record,
                                        .worker = name_worker(effect)};
    wpk_history_put_trial(p->options.store, &result);
}

static void put_times(struct wpk_performer *p, const struct wpk_effect *effect)
{
    const struct wpk_final_entry *entry = effect->entry;
    struct wpk_history_contender contender = {.problem_id = effect->search->problem_id,
                                              .search_id = effect->search->id,
                                              .provider = entry->provider,
                                              .candidate = entry->candidate,
                                              .artifact_sha256 = entry->artifact_sha256,
                                              .worker = name_worker(effect)};
    if (effect->record != NULL) {
        wpk_history_put_verified(p->options.store, &contender, effect->record);
    } else {
        wpk_history_put_times(p->options.store, &contender, &entry->timing);
    }
}

static void perform_store(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct wpk_store *store = p->options.store;
    begin(p);
    switch (effect->kind) {
    case WPK_EFFECT_PUT_JOB:
        wpk_history_put_job(store, effect->job, effect->source);
        break;
    case WPK_EFFECT_SET_OP:
        wpk_history_set_op(store, effect->job, effect->index);
        break;
    case WPK_EFFECT_SET_SEARCH:
        wpk_history_set_search(store, effect->search,
                               wpk_search_elapsed_ns(effect->search, now_ns(p)));
        break;
    case WPK_EFFECT_PUT_TRIAL:
        put_trial(p, effect);
        break;
    case WPK_EFFECT_PUT_TIMES:
        put_times(p, effect);
        break;
    default:
        WPK_ASSERT(false);
    }
}

static void tell(struct wpk_performer *p, const struct wpk_effect *effect)
{
    /* One that does not exist yet will be told when it is made. */
    struct wpk_search_actor *actor = find_actor(p, effect->search->handle);
    if (actor != NULL) {
        wpk_search_actor_tell(actor, effect->piece->text, &effect->piece->trial);
    }
}

static void perform(struct wpk_performer *p, const struct wpk_effect *effect)
{
    switch (effect->kind) {
    case WPK_EFFECT_REPLY:
        wpk_outbox_reply(&p->outbox, &effect->address, effect->message);
        break;
    case WPK_EFFECT_RESPOND_JOB:
    case WPK_EFFECT_RESPOND_WORKER:
    case WPK_EFFECT_RESPOND_PROBLEM:
        respond(p, effect);
        break;
    case WPK_EFFECT_SET_JOB:
        set_job(p, effect->job);
        break;
    case WPK_EFFECT_OPEN_SEARCH:
        open_search(p, effect);
        break;
    case WPK_EFFECT_PUT_KERNEL:
        put_kernel(p, effect);
        break;
    case WPK_EFFECT_PUT_ARTIFACT:
        put_artifact(p, effect);
        break;
    case WPK_EFFECT_GET_ARTIFACT:
        get_artifact(p, effect);
        break;
    case WPK_EFFECT_ASK:
        ask(p, effect);
        break;
    case WPK_EFFECT_TELL:
        tell(p, effect);
        break;
    case WPK_EFFECT_CLOSE_SEARCH:
        close_actor(p, effect->handle);
        break;
    case WPK_EFFECT_SET_OWNER:
    case WPK_EFFECT_SET_WORKER_ORDER:
        break; /* no room for them in the store yet */
    case WPK_EFFECT_LOG:
        wpk_log(WPK_LOG_INFO, effect->text, "%s", effect->detail);
        break;
    default:
        perform_store(p, effect);
    }
}

/* ---- events */

static void free_event(struct wpk_event *event)
{
    wpk_opened_free(event->opened);
    wpk_asked_free(event->asked);
}

static void step_one(struct wpk_performer *p, struct wpk_event *event)
{
    event->now_ns = now_ns(p);
    event->wall_ns = wpk_clock_wall_ns(p->options.clock);
    wpk_arena_reset(&p->effects.arena);
    wpk_coordinator_step(p->coordinator, event, &p->effects);
    for (uint32_t i = 0; i < p->effects.count; i++) {
        perform(p, &p->effects.items[i]);
    }
}

void wpk_performer_step(struct wpk_performer *p, struct wpk_event *event)
{
    step_one(p, event);
    for (uint32_t i = 0; i < p->follow_up_count; i++) {
        struct wpk_event next = p->follow_ups[i]; /* the array may move */
        step_one(p, &next);
        free_event(&next);
    }
    p->follow_up_count = 0;
}

/* An artifact is named once we have it: what is said to be ours, and is not, could never be served.
 * Before the step, so that state and store agree. */
static void forget_absent_artifacts(struct wpk_performer *p, struct wpk_message *message)
{
    for (uint32_t i = 0; i < message->result_count; i++) {
        char *sha256 = message->results[i].record.artifact_sha256;
        if (sha256[0] != '\0' && !wpk_history_has_artifact(p->options.store, sha256)) {
            wpk_log(WPK_LOG_WARN, "artifact_absent", "sha256=%s", sha256);
            sha256[0] = '\0';
        }
    }
}

/* A local socket's file says who may connect to it. */
static bool may_join(const struct wpk_performer *p, const struct wpk_net_address *address,
                     const struct wpk_hello *hello, struct wpk_diag *diag)
{
    uint64_t wall_ns = wpk_clock_wall_ns(p->options.clock);
    return p->options.auth == NULL || address->is_local ||
           wpk_admission_check(p->options.auth, hello, wall_ns, diag) == WPK_OK;
}

void wpk_performer_frame(struct wpk_performer *p, const struct wpk_net_address *address,
                         const char *frame, size_t size, uint64_t random)
{
    struct wpk_diag diag = {0};
    struct wpk_message message = {0};
    struct wpk_net_address answer_to = *address;
    wpk_err err = wpk_message_decode(frame, size, &message, &diag);
    answer_to.tag = err == WPK_OK ? message.version : WPK_PROTOCOL_VERSION_MIN;
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_WARN, "bad_message", err, &diag);
        wpk_outbox_error(&p->outbox, &answer_to, 0, err, &diag);
        return;
    }
    if (message.kind == WPK_MESSAGE_HELLO && !may_join(p, address, message.hello, &diag)) {
        wpk_log(WPK_LOG_WARN, "worker_refused", "worker=%s reason=\"%s\"", message.hello->name,
                diag.text);
        wpk_outbox_error(&p->outbox, &answer_to, 0, WPK_EACCES, &diag);
        wpk_message_fini(&message);
        return;
    }
    forget_absent_artifacts(p, &message);
    struct wpk_event event = {
        .kind = WPK_EVENT_MESSAGE, .random = random, .address = answer_to, .message = &message};
    wpk_performer_step(p, &event);
    wpk_message_fini(&message);
}

void wpk_performer_request(struct wpk_performer *p, const struct wpk_http_request *request,
                           uint64_t random)
{
    struct wpk_api api = make_api(p, random);
    struct wpk_api_answer answer;
    wpk_api_serve(&api, request, &answer);
    if (answer.how != WPK_API_NOW) {
        wpk_api_answer_fini(&answer);
        return;
    }
    *wpk_outbox_answer(&p->outbox, request->id) = answer;
}

void wpk_performer_order(struct wpk_performer *p, struct wpk_order *order)
{
    begin(p);
    order->next = NULL;
    if (p->order_last != NULL) {
        p->order_last->next = order;
    } else {
        p->order_first = order;
    }
    p->order_last = order;
    order->perform(order, p->options.store);
}

static void finish_orders(struct wpk_performer *p, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_order *next;
    struct wpk_order *first = p->order_first;
    p->order_first = NULL;
    p->order_last = NULL;
    for (struct wpk_order *order = first; order != NULL; order = next) {
        next = order->next;
        order->done(order, err, diag);
    }
}

void wpk_performer_answer(struct wpk_performer *p, uint64_t request, struct wpk_api_answer *answer)
{
    p->options.out.respond(p->options.out.user, request, answer);
    wpk_api_answer_fini(answer);
}

wpk_err wpk_performer_commit(struct wpk_performer *p, struct wpk_diag *diag)
{
    wpk_err err = wpk_store_status(p->options.store);
    if (p->in_batch || err != WPK_OK) {
        wpk_store_begin(p->options.store); /* a read outside of a batch may have failed */
        err = wpk_store_commit(p->options.store, diag);
        p->in_batch = false;
    }
    /* Orders first: whoever hears of this batch sees what they publish. What they begin belongs to
     * the next batch. */
    struct wpk_outbox held = p->outbox;
    p->outbox = (struct wpk_outbox){0};
    finish_orders(p, err, diag);
    wpk_outbox_release(&held, &p->options.out, err, diag);
    return err;
}

void wpk_performer_poll(struct wpk_performer *p)
{
    (void)p; /* nothing happens between the calls */
}

wpk_err wpk_performer_degraded(const struct wpk_performer *p, struct wpk_diag *diag)
{
    (void)p;
    (void)diag;
    return WPK_OK;
}

/* ---- life */

struct restored {
    struct wpk_job_entry *jobs[WPK_JOBS_LIVE_MAX];
    uint32_t count;
};

/* What is left of a job whose file is not understood any more: enough to say so. */
static struct wpk_job_entry *make_lost(const struct wpk_history_job *stored, wpk_err err,
                                       const struct wpk_diag *diag)
{
    struct wpk_job_entry *job = calloc(1, sizeof *job);
    WPK_ASSERT(job != NULL);
    snprintf(job->name, sizeof job->name, "%s", stored->name);
    snprintf(job->owner, sizeof job->owner, "%s", stored->owner);
    job->priority = stored->priority;
    job->state = WPK_JOB_FAILED;
    snprintf(job->reason, sizeof job->reason,
             "this wpkd does not understand the job's file: %.180s",
             diag->text[0] != '\0' ? diag->text : wpk_err_text(err));
    return job;
}

static void load_job(void *user, const struct wpk_history_job *stored)
{
    struct restored *restored = user;
    struct wpk_diag diag = {0};
    struct wpk_job_entry *job = NULL;
    if (restored->count == WPK_JOBS_LIVE_MAX) {
        return;
    }
    wpk_err err = wpk_submission_decode(stored->source, strlen(stored->source), &job, &diag);
    if (err == WPK_ENOMEM) {
        return; /* it stays, for the next start */
    }
    if (err == WPK_OK) {
        job->state = stored->started_wall_ns != 0 ? WPK_JOB_RUNNING : WPK_JOB_QUEUED;
    } else {
        wpk_log_failure(WPK_LOG_ERROR, "job_not_restored", err, &diag);
        job = make_lost(stored, err, &diag);
    }
    job->number = stored->number;
    snprintf(job->id, sizeof job->id, "%s", stored->id);
    job->created_wall_ns = stored->created_wall_ns;
    job->started_wall_ns = stored->started_wall_ns;
    restored->jobs[restored->count++] = job;
}

static void load_ops(struct wpk_store *store, struct wpk_job_entry *job)
{
    for (uint32_t i = 0; i < job->op_count; i++) {
        struct wpk_history_op op;
        if (wpk_history_op(store, job->number, i, &op)) {
            job->ops[i].phase = op.phase;
            job->ops[i].kernel_id = op.kernel_id;
            job->ops[i].from_history = op.from_history;
            memcpy(job->ops[i].reason, op.reason, sizeof job->ops[i].reason);
        }
    }
}

/* A job that was accepted does not vanish: it failed, with its reason. */
static void end_lost(struct wpk_performer *p, struct wpk_job_entry *job)
{
    job->finished_wall_ns = wpk_clock_wall_ns(p->options.clock);
    set_job(p, job);
    wpk_history_fail_ops(p->options.store, job);
    wpk_job_entry_free(job);
}

static wpk_err restore(struct wpk_performer *p, struct wpk_diag *diag)
{
    struct restored *restored = calloc(1, sizeof *restored);
    if (restored == NULL) {
        return WPK_ENOMEM;
    }
    wpk_history_live_jobs(p->options.store, load_job, restored);
    for (uint32_t i = 0; i < restored->count; i++) {
        if (restored->jobs[i]->state == WPK_JOB_FAILED) {
            end_lost(p, restored->jobs[i]);
            continue;
        }
        load_ops(p->options.store, restored->jobs[i]);
        struct wpk_event event = {.kind = WPK_EVENT_RESTORE, .job = restored->jobs[i]};
        wpk_performer_step(p, &event);
    }
    free(restored);
    return wpk_performer_commit(p, diag);
}

wpk_err wpk_performer_new(const struct wpk_performer_options *options, struct wpk_performer **out,
                          struct wpk_diag *diag)
{
    struct wpk_performer *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return WPK_ENOMEM;
    }
    p->options = *options;
    wpk_err err = wpk_effects_init(&p->effects);
    if (err == WPK_OK) {
        err = wpk_coordinator_new(wpk_history_job_number_next(options->store), &p->coordinator);
    }
    if (err == WPK_OK) {
        err = restore(p, diag);
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
    struct wpk_diag ended = {.text = "wpkd is ending"};
    wpk_outbox_release(&p->outbox, &p->options.out, WPK_ECLOSED, &ended);
    finish_orders(p, WPK_ECLOSED, &ended);
    while (p->actor_count > 0) {
        close_actor(p, p->actors[0].handle);
    }
    free(p->actors);
    wpk_coordinator_free(p->coordinator);
    wpk_effects_fini(&p->effects);
    free(p->follow_ups);
    free(p);
}

const struct wpk_coordinator *wpk_performer_coordinator(const struct wpk_performer *p)
{
    return p->coordinator;
}
