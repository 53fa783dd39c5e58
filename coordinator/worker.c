/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: their sessions, their leases and their polls. What they are given is in dispatch.c.
 *
 * Leases live in memory only. They save work, and decide nothing: the first result for a piece of
 * work wins, whoever brings it. Each poll says what the worker holds, and that is believed: what it
 * does not hold was lost on the way and is leased again; what it does hold is its own again, after
 * a restart of either side. */
#include "coordinator/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- replies */

static void reply_error(struct wpk_coordinator *c, wpk_err err, const char *text)
{
    struct wpk_message *message = wpk_reply_new(c, WPK_MESSAGE_ERROR, c->event->message->session);
    message->err = err;
    message->text = text;
    wpk_reply_send(c, &c->event->address, message);
}

static void reply_acks(struct wpk_coordinator *c, enum wpk_ack *acks, uint32_t count)
{
    struct wpk_message *message = wpk_reply_new(c, WPK_MESSAGE_ACK, c->event->message->session);
    message->acks = acks;
    message->ack_count = count;
    wpk_reply_send(c, &c->event->address, message);
}

/* ---- leases */

static struct wpk_worker *find_session(struct wpk_coordinator *c, uint64_t session)
{
    for (uint32_t i = 0; session != 0 && i < c->worker_count; i++) {
        if (c->workers[i]->session == session) {
            return c->workers[i];
        }
    }
    return NULL;
}

/* The lease is over: the piece is open again, unless its result is there. */
static void drop_lease(struct wpk_search *search, wpk_work_id work, struct wpk_piece *piece,
                       struct wpk_worker *worker)
{
    WPK_ASSERT(piece->standing == WPK_STANDING_LEASED);
    piece->standing = WPK_STANDING_OPEN;
    WPK_ASSERT(worker->lease_count > 0);
    worker->lease_count--;
    WPK_ASSERT(search->leased_count > 0);
    search->leased_count--;
    if (work.kind == WPK_WORK_TRIAL && work.index < search->open_first) {
        search->open_first = work.index;
    }
}

/* Three workers did not survive it: that is its outcome. */
static void abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work)
{
    wpk_effect_log(c, "abandoned", "search=%llu kind=%s index=%u", (unsigned long long)search->id,
                   wpk_work_kind_name(work.kind), work.index);
    if (work.kind == WPK_WORK_FINAL) {
        wpk_final_timed(c, search, NULL, NULL);
        return;
    }
    struct wpk_record *record = wpk_effect_memory(c, 1, sizeof *record);
    record->outcome = WPK_OUTCOME_ABANDONED;
    snprintf(record->log, sizeof record->log, "%d workers were lost while they had it",
             WPK_ATTEMPTS_MAX);
    wpk_search_ended(c, search, work, record, NULL);
    wpk_search_advance(c, search);
}

typedef void (*lease_visit)(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                            struct wpk_piece *piece, struct wpk_worker *worker, void *user);

static void visit_piece(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                        struct wpk_worker *worker, lease_visit visit, void *user)
{
    struct wpk_piece *piece = wpk_search_piece(search, work);
    if (piece != NULL && piece->standing == WPK_STANDING_LEASED &&
        piece->session == worker->session) {
        visit(c, search, work, piece, worker, user);
    }
}

/* Visit every lease of the worker; the visitor may drop it. */
static void visit_leases(struct wpk_coordinator *c, struct wpk_worker *worker, lease_visit visit,
                         void *user)
{
    for (uint32_t s = 0; s < c->search_count && worker->lease_count > 0; s++) {
        struct wpk_search *search = c->searches[s];
        for (uint32_t i = search->told_count; i < search->ask_count && search->leased_count > 0;
             i++) {
            visit_piece(c, search, (wpk_work_id){search->id, WPK_WORK_TRIAL, i}, worker, visit,
                        user);
        }
        for (uint32_t i = 0; i < search->vendor_count; i++) {
            visit_piece(c, search, (wpk_work_id){search->id, WPK_WORK_VENDOR, i}, worker, visit,
                        user);
        }
        visit_piece(c, search, (wpk_work_id){search->id, WPK_WORK_FINAL, search->final_number},
                    worker, visit, user);
        visit_piece(c, search, (wpk_work_id){search->id, WPK_WORK_VERIFY, search->verify_number},
                    worker, visit, user);
    }
}

struct oldest {
    struct wpk_search *search;
    struct wpk_piece *piece;
    wpk_work_id work;
};

static void drop_and_keep_oldest(struct wpk_coordinator *c, struct wpk_search *search,
                                 wpk_work_id work, struct wpk_piece *piece,
                                 struct wpk_worker *worker, void *user)
{
    (void)c;
    struct oldest *oldest = user;
    drop_lease(search, work, piece, worker);
    piece->attempts--;
    if (oldest->piece == NULL || piece->lease < oldest->piece->lease) {
        *oldest = (struct oldest){search, piece, work};
    }
}

/* Take all leases back. If the worker died, the oldest is to blame: it was being run. */
static void drop_all_leases(struct wpk_coordinator *c, struct wpk_worker *worker, bool died)
{
    struct oldest oldest = {0};
    visit_leases(c, worker, drop_and_keep_oldest, &oldest);
    WPK_ASSERT(worker->lease_count == 0);
    if (died && oldest.piece != NULL && ++oldest.piece->attempts >= WPK_ATTEMPTS_MAX) {
        abandon(c, oldest.search, oldest.work);
    }
}

static void remove_worker(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    for (uint32_t i = 0; i < c->worker_count; i++) {
        if (c->workers[i] == worker) {
            c->workers[i] = c->workers[--c->worker_count];
            break;
        }
    }
    free(worker->poll_address);
    free(worker);
}

/* ---- hello */

static void hello(struct wpk_coordinator *c)
{
    const struct wpk_hello *hello = c->event->message->hello;
    for (uint32_t i = 0; i < c->worker_count; i++) {
        if (strcmp(c->workers[i]->hello.name, hello->name) == 0) {
            /* It lost its session, or we did; what it still holds, its first poll will say. */
            drop_all_leases(c, c->workers[i], false);
            remove_worker(c, c->workers[i]);
            break;
        }
    }
    if (c->worker_count == WPK_WORKERS_MAX) {
        reply_error(c, WPK_ENOSPC, "too many workers");
        return;
    }
    struct wpk_worker *worker = calloc(1, sizeof *worker);
    WPK_ASSERT(worker != NULL);
    worker->poll_address = calloc(1, sizeof *worker->poll_address);
    WPK_ASSERT(worker->poll_address != NULL);
    worker->session = c->event->random | 1; /* never 0 */
    worker->hello = *hello;
    worker->peer = c->event->address.peer;
    worker->heard_ns = c->event->now_ns;
    wpk_device_class(&hello->device, worker->device_class, sizeof worker->device_class);
    c->workers[c->worker_count++] = worker;
    wpk_effect_log(c, "worker_joined", "worker=%s device=\"%s\" environment=\"%s\"", hello->name,
                   worker->device_class, hello->environment);
    wpk_search_bind(c, worker);
    struct wpk_message *welcome = wpk_reply_new(c, WPK_MESSAGE_WELCOME, worker->session);
    welcome->lease_ms = WPK_LEASE_MS;
    wpk_reply_send(c, &c->event->address, welcome);
}

/* ---- poll */

static bool is_held(const struct wpk_message *message, wpk_work_id work)
{
    for (uint32_t i = 0; i < message->holding_count; i++) {
        if (wpk_work_id_equal(message->holding[i], work)) {
            return true;
        }
    }
    return false;
}

static void drop_unless_held(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                             struct wpk_piece *piece, struct wpk_worker *worker, void *user)
{
    (void)user;
    if (!is_held(c->event->message, work)) {
        drop_lease(search, work, piece, worker);
        piece->attempts--;
    }
}

static void adopt_held(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    for (uint32_t i = 0; i < message->holding_count; i++) {
        wpk_work_id work = message->holding[i];
        struct wpk_search *search = wpk_search_find(c, work.search);
        struct wpk_piece *piece = search != NULL ? wpk_search_piece(search, work) : NULL;
        if (piece != NULL && piece->standing == WPK_STANDING_OPEN &&
            worker->lease_count < WPK_LEASES_MAX) {
            wpk_lease_take(c, search, piece, worker);
        }
    }
}

static void poll(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    visit_leases(c, worker, drop_unless_held, NULL);
    adopt_held(c, worker);
    worker->draining = false;
    worker->polling = true;
    *worker->poll_address = c->event->address;
    worker->poll_want = message->want;
    worker->poll_until_ns = c->event->now_ns + message->wait_ms * UINT64_C(1000000);
}

/* ---- results */

static enum wpk_ack accept_result(struct wpk_coordinator *c, struct wpk_worker *worker,
                                  const struct wpk_result *result)
{
    struct wpk_search *search = wpk_search_find(c, result->id.search);
    struct wpk_piece *piece = search != NULL ? wpk_search_piece(search, result->id) : NULL;
    if (search != NULL && result->id.kind == WPK_WORK_TRIAL &&
        result->id.index < search->told_count) {
        return WPK_ACK_ALREADY_RECORDED;
    }
    if (piece == NULL) {
        return WPK_ACK_UNKNOWN;
    }
    if (piece->standing == WPK_STANDING_ENDED) {
        return WPK_ACK_ALREADY_RECORDED;
    }
    if (piece->standing == WPK_STANDING_LEASED) {
        struct wpk_worker *holder = find_session(c, piece->session);
        WPK_ASSERT(holder != NULL);
        drop_lease(search, result->id, piece, holder);
    }
    if (result->id.kind == WPK_WORK_FINAL) {
        bool whole = result->timing_count == search->entry_count;
        if (!whole) {
            wpk_effect_log(c, "final_failed", "search=%llu reason=\"%.300s\"",
                           (unsigned long long)search->id, result->failure);
        }
        wpk_final_timed(c, search, whole ? result->timing : NULL, worker);
    } else {
        wpk_search_ended(c, search, result->id, &result->record, worker);
    }
    wpk_search_advance(c, search);
    return WPK_ACK_RECORDED;
}

static void results(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    enum wpk_ack *acks = wpk_effect_memory(c, message->result_count + 1, sizeof *acks);
    for (uint32_t i = 0; i < message->result_count; i++) {
        acks[i] = accept_result(c, worker, &message->results[i]);
    }
    reply_acks(c, acks, message->result_count);
}

static void give_back(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_message *message = c->event->message;
    for (uint32_t i = 0; i < message->given_back_count; i++) {
        wpk_work_id work = message->given_back[i];
        struct wpk_search *search = wpk_search_find(c, work.search);
        struct wpk_piece *piece = search != NULL ? wpk_search_piece(search, work) : NULL;
        if (piece != NULL && piece->standing == WPK_STANDING_LEASED &&
            piece->session == worker->session) {
            drop_lease(search, work, piece, worker);
            piece->attempts--;
        }
    }
    worker->draining = true;
    worker->polling = false;
    wpk_effect_log(c, "worker_left", "worker=%s", worker->hello.name);
    reply_acks(c, wpk_effect_memory(c, 1, sizeof(enum wpk_ack)), 0);
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
    struct wpk_worker *worker = find_session(c, message->session);
    if (worker == NULL) {
        reply_error(c, WPK_ENOENT, "the session is not known; say hello");
        return;
    }
    worker->heard_ns = c->event->now_ns;
    worker->gone_ns = 0;
    worker->peer = c->event->address.peer;
    switch (message->kind) {
    case WPK_MESSAGE_POLL:
        poll(c, worker);
        break;
    case WPK_MESSAGE_RESULTS:
        results(c, worker);
        break;
    case WPK_MESSAGE_GIVE_BACK:
        give_back(c, worker);
        break;
    case WPK_MESSAGE_PUT_ARTIFACT:
        pass_on(c, WPK_EFFECT_PUT_ARTIFACT);
        break;
    case WPK_MESSAGE_GET_ARTIFACT:
        pass_on(c, WPK_EFFECT_GET_ARTIFACT);
        break;
    default:
        reply_error(c, WPK_EINVAL, "that is for wpkd to say");
        break;
    }
}

/* ---- loss */

void wpk_worker_gone(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->worker_count; i++) {
        struct wpk_worker *worker = c->workers[i];
        if (worker->peer == c->event->address.peer) {
            worker->peer = 0;
            worker->polling = false;
            worker->gone_ns = c->event->now_ns;
        }
    }
}

static bool is_lost(const struct wpk_worker *worker, uint64_t now_ns)
{
    if (worker->polling) {
        return false; /* its poll waits here, on a connection that is still there */
    }
    const uint64_t ms = 1000000;
    return (worker->gone_ns != 0 && now_ns > worker->gone_ns + WPK_GONE_MS * ms) ||
           now_ns > worker->heard_ns + WPK_LEASE_MS * ms;
}

/* Time in which we did not run ourselves is nobody's silence, and nobody's budget. */
static void forgive_sleep(struct wpk_coordinator *c)
{
    uint64_t gap_ns = c->ticked_ns != 0 ? c->event->now_ns - c->ticked_ns : 0;
    c->ticked_ns = c->event->now_ns;
    if (gap_ns <= WPK_SLEPT_MS * UINT64_C(1000000)) {
        return;
    }
    wpk_effect_log(c, "slept", "ms=%llu", (unsigned long long)(gap_ns / 1000000));
    for (uint32_t i = 0; i < c->worker_count; i++) {
        struct wpk_worker *worker = c->workers[i];
        worker->heard_ns += gap_ns;
        worker->gone_ns += worker->gone_ns != 0 ? gap_ns : 0;
    }
    for (uint32_t i = 0; i < c->search_count; i++) {
        c->searches[i]->active_ns += c->searches[i]->active_ns != 0 ? gap_ns : 0;
    }
}

void wpk_worker_tick(struct wpk_coordinator *c)
{
    forgive_sleep(c);
    for (uint32_t i = c->worker_count; i-- > 0;) {
        struct wpk_worker *worker = c->workers[i];
        if (is_lost(worker, c->event->now_ns)) {
            if (!worker->draining) {
                wpk_effect_log(c, "worker_lost", "worker=%s leases=%u", worker->hello.name,
                               worker->lease_count);
            }
            drop_all_leases(c, worker, !worker->draining);
            remove_worker(c, worker);
        }
    }
}
