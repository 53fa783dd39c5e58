/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: their sessions and polls. result.c takes their results, dispatch.c gives them work.
 *
 *     hello ─▶ ready ─▶ silent, or its connection ended ─▶ lost: its leases are taken back
 *                │
 *                └─▶ leaving: it gave them back itself
 *
 * Each poll names the work items that the worker holds. A lease that it does not name was lost on
 * the way and is given back. A work item that it names without a lease is leased to it again if it
 * is open: so a worker keeps its work across a restart of wpkd. */
#include "coordinator/state/worker.h"

#include "common/crypto.h"
#include "common/metrics.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/job.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {WPK_ADMIN_STATE_LIST(WPK_LIST_TEXT)};

/* ---- admin states by name */

WPK_LIST_NAME(wpk_admin_state_name, enum wpk_admin_state, state_names)
WPK_LIST_PARSE(wpk_admin_state_parse, enum wpk_admin_state, state_names)

/* True if `name` is the worker's own or its device's instance. */
static bool is_for(const struct wpk_worker *worker, const char *name)
{
    return strcmp(worker->hello.name, name) == 0 ||
           strcmp(worker->hello.device.instance, name) == 0;
}

wpk_err wpk_admin_state_check(const struct wpk_coordinator *c, const char *name,
                              enum wpk_admin_state state)
{
    bool kept = wpk_table_get_text(&c->admin_states, name) != NULL;
    bool known = kept;
    for (uint32_t i = 0; i < c->worker_count && !known; i++) {
        known = is_for(c->workers[i], name);
    }
    if (!known) {
        return WPK_ENOENT;
    }
    bool full = !kept && c->admin_states.count == WPK_ADMIN_STATES_MAX;
    return full && state != WPK_ADMIN_STATE_NONE ? WPK_ENOSPC : WPK_OK;
}

/* Set the worker's admin state and reason from those that are kept: of two, the
 * stricter one. A device keeps its admin state, whatever name its worker has next. */
static void find_admin_state(const struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_admin_entry *entry = wpk_table_get_text(&c->admin_states, worker->hello.name);
    const struct wpk_admin_entry *of_device =
        wpk_table_get_text(&c->admin_states, worker->hello.device.instance);
    if (entry == NULL || (of_device != NULL && of_device->state > entry->state)) {
        entry = of_device;
    }
    worker->admin_state = entry != NULL ? entry->state : WPK_ADMIN_STATE_NONE;
    worker->admin_reason = entry != NULL ? entry->reason : "";
}

#define MS UINT64_C(1000000)

/* ---- in the tables */

static void set_peer(struct wpk_coordinator *c, struct wpk_worker *worker, uint32_t peer)
{
    if (worker->peer == peer) {
        return;
    }
    if (worker->peer != 0) {
        struct wpk_worker *first = wpk_table_take(&c->workers_by_peer, worker->peer);
        struct wpk_worker **at = &first;
        while (*at != worker) {
            at = &(*at)->peer_next;
        }
        *at = worker->peer_next;
        if (first != NULL) {
            wpk_table_put(&c->workers_by_peer, worker->peer, first);
        }
    }
    worker->peer = peer;
    worker->peer_next = NULL;
    if (peer != 0) {
        worker->peer_next = wpk_table_take(&c->workers_by_peer, peer);
        wpk_table_put(&c->workers_by_peer, peer, worker);
    }
}

static void update_available(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    bool available = worker->peer != 0 && !worker->draining && !worker->stuck &&
                     worker->admin_state == WPK_ADMIN_STATE_NONE;
    if (wpk_worker_class_set_available(c, worker, available)) {
        wpk_job_mark_unbound(c, worker->worker_class);
    }
}

void wpk_worker_free(struct wpk_worker *worker)
{
    free(worker->poll_address);
    free(worker->comparisons);
    free(worker);
}

static void remove_worker(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    WPK_ASSERT(worker->lease_count == 0);
    wpk_timer_cancel(&c->worker_timers, &worker->timer);
    wpk_worker_class_leave(c, worker);
    set_peer(c, worker, 0);
    wpk_table_take(&c->workers_by_session, worker->session);
    wpk_table_take_text(&c->workers_by_name, worker->hello.name);
    c->workers[worker->place] = c->workers[--c->worker_count];
    c->workers[worker->place]->place = worker->place;
    if (c->polled == worker) {
        c->polled = NULL;
    }
    wpk_worker_free(worker);
}

/* ---- hello */

static struct wpk_worker *worker_new(struct wpk_coordinator *c, const struct wpk_hello *hello)
{
    struct wpk_worker *worker = WPK_DEMAND(calloc(1, sizeof *worker));
    worker->poll_address = WPK_DEMAND(calloc(1, sizeof *worker->poll_address));
    worker->session = c->event->random | 1; /* never 0 */
    while (wpk_table_get(&c->workers_by_session, worker->session) != NULL) {
        worker->session += 2;
    }
    memcpy(&worker->hello, hello, sizeof worker->hello);
    /* The credential that admitted the worker: only a hash of the token is kept. */
    worker->is_local = c->event->address.is_local;
    if (!worker->is_local) {
        wpk_crypto_sha256(hello->token, strlen(hello->token), worker->token_hash);
    }
    memset(worker->hello.token, 0, sizeof worker->hello.token);
    worker->hello.roles = hello->roles != 0 ? hello->roles : WPK_WORKER_ROLES_ALL;
    worker->name_hash = wpk_table_hash(hello->name);
    worker->device_hash =
        wpk_table_hash(hello->device.instance[0] != '\0' ? hello->device.instance : hello->name);
    worker->heard_ns = c->event->now_ns;
    worker->timer.owner = worker;
    wpk_device_class(&hello->device, worker->device_class, sizeof worker->device_class);
    worker->place = c->worker_count;
    c->workers[c->worker_count++] = worker;
    wpk_table_put(&c->workers_by_session, worker->session, worker);
    wpk_table_put_text(&c->workers_by_name, worker->hello.name, worker);
    find_admin_state(c, worker);
    set_peer(c, worker, c->event->address.peer);
    return worker;
}

static bool shows_same_token(const struct wpk_worker *worker, const struct wpk_event *event)
{
    uint8_t hash[WPK_SHA256_SIZE];
    const char *token = event->message->hello->token;
    wpk_crypto_sha256(token, strlen(token), hash);
    return !worker->is_local && !event->address.is_local &&
           wpk_crypto_equal(worker->token_hash, hash, sizeof hash);
}

/* True if the hello is from the same worker on a new connection: it keeps its leases. */
static bool is_same(const struct wpk_worker *worker, const struct wpk_hello *hello)
{
    struct wpk_hello said;
    memcpy(&said, hello, sizeof said);
    memset(said.token, 0, sizeof said.token);
    said.roles = said.roles != 0 ? said.roles : WPK_WORKER_ROLES_ALL;
    return memcmp(&worker->hello, &said, sizeof said) == 0;
}

static void welcome(struct wpk_coordinator *c, const struct wpk_worker *worker)
{
    struct wpk_message *welcome = wpk_reply_new(c, WPK_MESSAGE_WELCOME, worker->session);
    welcome->lease_ms = WPK_LEASE_MS;
    welcome->server = "wpkd " WPK_VERSION;
    wpk_reply_send(c, &c->event->address, welcome);
}

/* A connection from elsewhere is one worker's: else one of them could be all that there is room
 * for. */
static void end_others(struct wpk_coordinator *c, const struct wpk_worker *worker)
{
    struct wpk_worker *other = wpk_table_get(&c->workers_by_peer, c->event->address.peer);
    for (struct wpk_worker *next; other != NULL && !c->event->address.is_local; other = next) {
        next = other->peer_next;
        if (other != worker) {
            wpk_loss_return_all(c, other, false);
            remove_worker(c, other);
        }
    }
}

static void renew(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    end_others(c, worker);
    wpk_worker_class_unwait(worker);
    worker->polling = false;
    worker->heard_ns = c->event->now_ns;
    worker->gone_ns = 0;
    set_peer(c, worker, c->event->address.peer);
    update_available(c, worker);
    wpk_poll_set_timer(c, worker);
    welcome(c, worker);
}

static void hello(struct wpk_coordinator *c)
{
    const struct wpk_hello *hello = c->event->message->hello;
    struct wpk_worker *worker = wpk_table_get_text(&c->workers_by_name, hello->name);
    bool both_local = worker != NULL && worker->is_local && c->event->address.is_local;
    if (worker != NULL && !both_local) {
        bool same_token = shows_same_token(worker, c->event);
        if (same_token && is_same(worker, hello)) {
            renew(c, worker);
            return;
        }
        if (!same_token && worker->peer != 0) {
            wpk_effect_log(c, "worker_name_taken", "worker=%s", hello->name);
            wpk_reply_error(c, WPK_EBUSY, "a worker of this name is here, with another token");
            return;
        }
    }
    if (worker != NULL) {
        /* It lost its session, or we did; what it still holds, its first poll will say. */
        wpk_loss_return_all(c, worker, false);
        remove_worker(c, worker);
    }
    end_others(c, NULL);
    if (c->worker_count == WPK_WORKERS_MAX) {
        wpk_reply_error(c, WPK_ENOSPC, "too many workers");
        return;
    }
    worker = worker_new(c, hello);
    if (wpk_worker_class_join(c, worker)) {
        wpk_job_mark_unbound(c, worker->worker_class);
    }
    update_available(c, worker);
    wpk_poll_set_timer(c, worker);
    wpk_effect_log(c, "worker_joined", "worker=%s device=\"%s\" environment=\"%s\" order=%s",
                   hello->name, worker->device_class, hello->environment,
                   wpk_admin_state_name(worker->admin_state));
    welcome(c, worker);
}

/* ---- poll */

/* Not what it took as another device, before it said hello again. */
static bool may_hold(const struct wpk_search *search, const struct wpk_work_item *item,
                     const struct wpk_worker *worker)
{
    bool builds = (worker->hello.roles & WPK_WORKER_RUNS) == 0;
    bool excluded = item == &search->verify && wpk_final_excludes(search, worker);
    return !worker->stuck && worker->lease_count < WPK_LEASES_MAX &&
           (!builds || item->built == NULL) && !excluded &&
           worker->admin_state != WPK_ADMIN_STATE_QUARANTINE &&
           wpk_search_trusts(search, worker, builds ? WPK_STAGE_BUILD : WPK_STAGE_WHOLE);
}

/* Keep the leases that a worker names, and give it a lease on open work that it names. Return
 * leases that it does not name: they were lost on the way. */
static void take_holding(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    for (uint32_t i = 0; i < message->holding_count; i++) {
        wpk_work_id work = message->holding[i];
        struct wpk_search *search = wpk_search_find(c, work.search);
        struct wpk_work_item *item = search != NULL ? wpk_search_work_item(search, work) : NULL;
        if (item == NULL) {
            continue;
        }
        if (item->standing == WPK_STANDING_LEASED && item->lease->worker == worker) {
            item->lease->named = c->step;
        } else if (item->standing == WPK_STANDING_OPEN && may_hold(search, item, worker)) {
            struct wpk_flow *flow =
                search->claims != NULL ? search->claims->owner_queue->flow : NULL;
            wpk_lease_take(c, search, work, worker, flow)->named = c->step;
            wpk_mark_search(c, search, WPK_SEARCH_READY);
        }
    }
    for (struct wpk_lease *lease = worker->leases_last, *prev; lease != NULL; lease = prev) {
        prev = lease->prev;
        if (lease->named != c->step) {
            wpk_lease_return(c, lease);
        }
    }
}

static void poll(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    wpk_loss_watch(c, worker, message->running);
    take_holding(c, worker);
    worker->draining = false;
    update_available(c, worker);
    wpk_worker_class_unwait(worker);
    worker->polling = true;
    *worker->poll_address = c->event->address;
    worker->poll_want = message->want;
    worker->poll_until_ns = c->event->now_ns + message->wait_ms * MS;
    c->polled = worker;
    if (message->want > 0 && worker->available && !c->draining) {
        wpk_worker_class_wait(c, worker);
    }
    wpk_poll_set_timer(c, worker);
}

/* ---- messages */

static void give_back(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    for (uint32_t i = 0; i < message->given_back_count; i++) {
        wpk_work_id work = message->given_back[i];
        struct wpk_search *search = wpk_search_find(c, work.search);
        struct wpk_work_item *item = search != NULL ? wpk_search_work_item(search, work) : NULL;
        if (item != NULL && item->standing == WPK_STANDING_LEASED &&
            item->lease->worker == worker) {
            wpk_lease_return(c, item->lease);
        }
    }
    worker->draining = true;
    worker->polling = false;
    wpk_worker_class_unwait(worker);
    update_available(c, worker);
    if (message->reason != NULL && message->reason[0] != '\0') {
        snprintf(worker->failure, sizeof(worker->failure), "%s", message->reason);
        wpk_metric_add(WPK_COUNTER_WORKERS_FAILED, 0, 1);
        wpk_poll_set_timer(c, worker);
    }
    wpk_effect_log(c, "worker_left", "worker=%s reason=\"%.300s\"", worker->hello.name,
                   worker->failure);
    wpk_reply_acks(c, wpk_effect_memory(c, 1, sizeof(enum wpk_ack)), 0);
}

static void pass_on(struct wpk_coordinator *c, enum wpk_effect_kind kind)
{
    struct wpk_effect *effect = wpk_effect_add(c, kind);
    effect->address = c->event->address;
    effect->message = c->event->message;
}

void wpk_worker_message(struct wpk_coordinator *c)
{
    const struct wpk_message *message = c->event->message;
    if (message->kind == WPK_MESSAGE_HELLO) {
        hello(c);
        return;
    }
    struct wpk_worker *worker = wpk_table_get(&c->workers_by_session, message->session);
    /* From elsewhere a session is good only on the connection that has shown the token. */
    bool elsewhere = worker != NULL && !worker->is_local && worker->peer != c->event->address.peer;
    if (worker == NULL || elsewhere) {
        wpk_reply_error(c, WPK_ENOENT, "the session is not known; say hello");
        return;
    }
    worker->heard_ns = c->event->now_ns;
    worker->gone_ns = 0;
    set_peer(c, worker, c->event->address.peer);
    update_available(c, worker);
    switch (message->kind) {
    case WPK_MESSAGE_POLL:
        poll(c, worker);
        break;
    case WPK_MESSAGE_RESULTS:
        wpk_result_message(c, worker);
        break;
    case WPK_MESSAGE_GIVE_BACK:
        give_back(c, worker);
        break;
    case WPK_MESSAGE_PUT_ARTIFACT:
        if (wpk_result_takes_artifact(c, worker)) {
            pass_on(c, WPK_EFFECT_PUT_ARTIFACT);
        }
        break;
    case WPK_MESSAGE_GET_ARTIFACT:
        pass_on(c, WPK_EFFECT_GET_ARTIFACT);
        break;
    default:
        wpk_reply_error(c, WPK_EINVAL, "that is for wpkd to say");
        break;
    }
}

/* ---- admin states */

static void apply_admin_state(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    find_admin_state(c, worker);
    if (worker->admin_state == WPK_ADMIN_STATE_QUARANTINE) {
        wpk_loss_return_all(c, worker, false);
    }
    if (worker->admin_state != WPK_ADMIN_STATE_NONE) {
        wpk_worker_class_unwait(worker);
    } else if (worker->polling && worker->poll_want > 0 && !c->draining) {
        wpk_worker_class_wait(c, worker);
    }
    update_available(c, worker);
}

static void apply_admin_states(struct wpk_coordinator *c, const char *name)
{
    for (uint32_t i = 0; i < c->worker_count; i++) {
        if (is_for(c->workers[i], name)) {
            apply_admin_state(c, c->workers[i]);
        }
    }
}

/* False when there are too many. */
static bool keep_admin_state(struct wpk_coordinator *c, const char *name,
                             enum wpk_admin_state state, const char *reason)
{
    struct wpk_admin_entry *entry = wpk_table_take_text(&c->admin_states, name);
    if (state == WPK_ADMIN_STATE_NONE) {
        apply_admin_states(c, name); /* before the reason goes that they borrow */
        free(entry);
        return true;
    }
    if (entry == NULL && c->admin_states.count == WPK_ADMIN_STATES_MAX) {
        return false;
    }
    if (entry == NULL) {
        entry = WPK_DEMAND(calloc(1, sizeof *entry));
        snprintf(entry->name, sizeof entry->name, "%s", name);
    }
    entry->state = state;
    snprintf(entry->reason, sizeof entry->reason, "%s", reason != NULL ? reason : "");
    wpk_table_put_text(&c->admin_states, entry->name, entry);
    apply_admin_states(c, name);
    return true;
}

void wpk_worker_restore_admin_state(struct wpk_coordinator *c)
{
    keep_admin_state(c, c->event->worker, c->event->admin_state, c->event->reason);
}

void wpk_worker_set(struct wpk_coordinator *c)
{
    const struct wpk_event *event = c->event;
    wpk_err err = wpk_admin_state_check(c, event->worker, event->admin_state);
    if (err != WPK_OK) {
        wpk_effect_problem(c, err == WPK_ENOENT ? 404 : 409, err, 0,
                           err == WPK_ENOENT
                               ? "there is no such worker; the list of workers has their names"
                               : "admin states of too many workers are kept");
        return;
    }
    bool kept = keep_admin_state(c, event->worker, event->admin_state, event->reason);
    WPK_ASSERT(kept);
    const char *reason = event->reason != NULL ? event->reason : "";
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_SET_ADMIN_STATE);
    effect->admin.worker = wpk_effect_text(c, event->worker);
    effect->admin.state = event->admin_state;
    effect->admin.reason = wpk_effect_text(c, reason);
    wpk_effect_log(c, "worker_set", "worker=%s order=%s reason=\"%.200s\"", event->worker,
                   wpk_admin_state_name(event->admin_state), reason);
    if (event->request != 0) {
        struct wpk_effect *answer = wpk_effect_add(c, WPK_EFFECT_RESPOND_WORKER);
        answer->request = event->request;
        answer->status = 200;
        answer->answered_admin =
            (struct wpk_admin_change){.worker = wpk_effect_text(c, event->worker),
                                      .state = event->admin_state,
                                      .reason = wpk_effect_text(c, reason)};
    }
}

void wpk_worker_end(struct wpk_coordinator *c)
{
    struct wpk_worker *worker = wpk_table_get(&c->workers_by_session, c->event->session);
    if (worker == NULL) {
        return;
    }
    wpk_effect_log(c, "worker_ended", "worker=%s leases=%u reason=\"%s\"", worker->hello.name,
                   worker->lease_count, c->event->fault);
    if (worker->polling) {
        struct wpk_message *error = wpk_reply_new(c, WPK_MESSAGE_ERROR, worker->session);
        error->err = WPK_EACCES;
        error->text = c->event->fault;
        wpk_poll_answer(c, worker, error);
    }
    wpk_loss_return_all(c, worker, false);
    remove_worker(c, worker);
}

void wpk_worker_drain(struct wpk_coordinator *c)
{
    c->draining = true;
    for (uint32_t i = 0; i < c->worker_count; i++) {
        if (c->workers[i]->polling) {
            wpk_poll_answer_empty(c, c->workers[i]);
        }
    }
}

/* ---- loss */

void wpk_worker_gone(struct wpk_coordinator *c)
{
    struct wpk_worker *worker = wpk_table_get(&c->workers_by_peer, c->event->address.peer);
    for (struct wpk_worker *next; worker != NULL; worker = next) {
        next = worker->peer_next;
        set_peer(c, worker, 0);
        worker->polling = false;
        wpk_worker_class_unwait(worker);
        worker->gone_ns = c->event->now_ns;
        update_available(c, worker);
        wpk_poll_set_timer(c, worker);
    }
}

void wpk_worker_look_at(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    if (worker->polling && worker->poll_until_ns <= c->event->now_ns) {
        wpk_poll_answer_empty(c, worker);
        return;
    }
    if (worker->polling || wpk_poll_lost_ns(worker) > c->event->now_ns) {
        wpk_poll_set_timer(c, worker); /* it has been heard of since the timer was set */
        return;
    }
    if (!worker->draining) {
        wpk_effect_log(c, "worker_lost", "worker=%s leases=%u reason=%s", worker->hello.name,
                       worker->lease_count, worker->gone_ns != 0 ? "connection_ended" : "silence");
    }
    wpk_loss_return_all(c, worker, !worker->draining);
    remove_worker(c, worker);
}
