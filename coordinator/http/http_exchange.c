/* SPDX-License-Identifier: Apache-2.0 */
/* One connection and its request, on the way from the library to the owner and back:
 *
 *      NEW ──▶ READING ──┬──────────────▶ ANSWERED ──▶ NEW ...
 *                        └──▶ QUEUED ───────▲
 *                            (suspended)
 */
#include "common/fs.h"
#include "common/metrics.h"
#include "coordinator/http/http_parts.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

bool wpk_http_exchange_mark(struct wpk_http_exchange *exchange, enum wpk_connection_phase phase,
                            uint64_t for_ms)
{
    return wpk_admission_mark(exchange->server->admission, exchange->number, phase,
                              exchange->request.identity.owner[0] != '\0',
                              wpk_clock_now_ns(exchange->server->clock) + for_ms * WPK_NS_PER_MS);
}

bool wpk_http_exchange_hold(struct wpk_http_exchange *exchange, size_t size)
{
    struct wpk_http_server *server = exchange->server;
    if (size <= WPK_HTTP_SMALL_MAX) {
        return true;
    }
    pthread_mutex_lock(&server->lock);
    bool fits = server->held + size <= WPK_HTTP_HELD_MAX;
    server->held += fits ? size : 0;
    pthread_mutex_unlock(&server->lock);
    exchange->held += fits ? size : 0;
    return fits;
}

void wpk_http_exchange_release(struct wpk_http_exchange *exchange)
{
    if (exchange->held > 0) {
        pthread_mutex_lock(&exchange->server->lock);
        exchange->server->held -= exchange->held;
        pthread_mutex_unlock(&exchange->server->lock);
        exchange->held = 0;
    }
}

/* ---- responses */

void wpk_http_refuse(struct wpk_api_answer *answer, int status, const char *title,
                     const char *detail)
{
    memset(answer, 0, sizeof *answer);
    answer->status = status;
    answer->content_type = "application/problem+json";
    answer->retry_after_s = status == MHD_HTTP_SERVICE_UNAVAILABLE ? 1 : 0;
    wpk_buf_printf(&answer->body,
                   "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"}",
                   title, status, detail);
}

static void add_page_headers(struct MHD_Response *made, const struct wpk_api_answer *answer,
                             bool is_secure)
{
    if (answer->policy != NULL) {
        MHD_add_response_header(made, "Content-Security-Policy", answer->policy);
        MHD_add_response_header(made, "Referrer-Policy", "no-referrer");
    }
    if (answer->cookie[0] != '\0') {
        /* Without Path the cookie is for the pages beside this one, behind a proxy's prefix too. */
        char text[WPK_COOKIE_SIZE + 128];
        snprintf(text, sizeof text,
                 WPK_COOKIE_NAME "=%s; HttpOnly; SameSite=Strict; Max-Age=%llu%s", answer->cookie,
                 (unsigned long long)(WPK_COOKIE_NS / WPK_NS_PER_S), is_secure ? "; Secure" : "");
        MHD_add_response_header(made, "Set-Cookie", text);
    }
}

static void add_headers(struct MHD_Response *made, const struct wpk_api_answer *answer, bool last)
{
    MHD_add_response_header(made, "Content-Type", answer->content_type);
    MHD_add_response_header(made, "Cache-Control",
                            answer->etag[0] != '\0' ? "private, no-cache" : "no-store");
    MHD_add_response_header(made, "X-Content-Type-Options", "nosniff");
    if (answer->location[0] != '\0') {
        MHD_add_response_header(made, "Location", answer->location);
    }
    if (answer->allow[0] != '\0') {
        MHD_add_response_header(made, "Allow", answer->allow);
    }
    if (answer->etag[0] != '\0') {
        MHD_add_response_header(made, "ETag", answer->etag);
    }
    if (answer->retry_after_s > 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%u", answer->retry_after_s);
        MHD_add_response_header(made, "Retry-After", seconds);
    }
    if (last) {
        MHD_add_response_header(made, "Connection", "close");
    }
}

struct MHD_Response *wpk_http_exchange_respond(struct wpk_http_exchange *exchange,
                                               struct wpk_api_answer *answer, bool last)
{
    const struct wpk_http_request *request = &exchange->request;
    bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    if (answer->status == MHD_HTTP_OK && answer->etag[0] != '\0' && reads &&
        wpk_http_etag_matches(request->if_none_match, answer->etag)) {
        answer->status = MHD_HTTP_NOT_MODIFIED;
        wpk_api_drop_body(answer);
    } else if (!wpk_http_exchange_hold(exchange, answer->release != NULL ? answer->borrowed_size
                                                                         : answer->body.size)) {
        wpk_api_drop_body(answer);
        wpk_http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no room",
                        "too much is being sent at once");
    }
    /* The library does not write to a buffer. */
    void *borrowed = (void *)(uintptr_t)answer->borrowed, *body = answer->body.data;
    struct MHD_Response *made =
        answer->release != NULL
            ? MHD_create_response_from_buffer_with_free_callback_cls(
                  answer->borrowed_size, borrowed, answer->release, answer->owner)
            : MHD_create_response_from_buffer_with_free_callback_cls(answer->body.size, body, free,
                                                                     body);
    if (made == NULL) {
        return NULL;
    }
    answer->release = NULL;
    answer->body = (struct wpk_buf){0};
    add_headers(made, answer,
                last || wpk_admission_is_last(exchange->server->admission, exchange->number));
    add_page_headers(made, answer, exchange->server->tls[exchange->listener]);
    exchange->status = answer->status;
    return made;
}

/* ---- the queue */

bool wpk_http_exchange_serve(struct wpk_http_exchange *exchange, struct wpk_api_answer *answer)
{
    const struct wpk_http_options *options = &exchange->server->options;
    bool answered =
        options->serve != NULL && options->serve(options->serve_user, &exchange->request, answer);
    if (!answered) {
        exchange->request.prepared = answer->owner;
        exchange->release = answer->release;
        memset(answer, 0, sizeof *answer);
    }
    return answered;
}

static void suspend(struct wpk_http_exchange *exchange)
{
    exchange->state = WPK_HTTP_EXCHANGE_QUEUED;
    MHD_suspend_connection(exchange->connection);
}

bool wpk_http_exchange_queue(struct wpk_http_exchange *exchange)
{
    struct wpk_http_server *server = exchange->server;
    pthread_mutex_lock(&server->lock);
    bool closing = server->closing;
    if (!closing) {
        exchange->request.id = ++server->queued_count << WPK_HTTP_NUMBER_BITS | exchange->number;
        exchange->next = NULL;
        server->awaited[exchange->number] = exchange->request.id;
        *(server->queue_last != NULL ? &server->queue_last->next : &server->queue_first) = exchange;
        server->queue_last = exchange;
        if (exchange->state != WPK_HTTP_EXCHANGE_QUEUED) { /* by a reader it is */
            suspend(exchange);                             /* before anybody can answer it */
        }
    }
    pthread_mutex_unlock(&server->lock);
    if (!closing) {
        server->options.wake(server->options.user);
    }
    return !closing;
}

void wpk_http_exchange_finish(struct wpk_http_exchange *exchange, struct wpk_api_answer *answer)
{
    exchange->response = wpk_http_exchange_respond(exchange, answer, false);
    exchange->state = WPK_HTTP_EXCHANGE_ANSWERED;
    MHD_resume_connection(exchange->connection);
}

void wpk_http_exchange_leave(struct wpk_http_exchange *exchange)
{
    struct wpk_http_server *server = exchange->server;
    pthread_mutex_lock(&server->lock);
    exchange->daemon->connection_count--;
    exchange->daemon = NULL;
    pthread_mutex_unlock(&server->lock);
    wpk_metric_change(WPK_GAUGE_HTTP_CONNECTIONS, 0, -1);
    wpk_admission_leave(server->admission, exchange->number);
}

/* Large requests are served on threads of their own: a job of a megabyte takes seconds to decode,
 * and other connections of the same library thread would wait as long. */

/* The oldest that waits; NULL at the end. */
static struct wpk_http_exchange *take_oldest(struct wpk_http_readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    while (readers->first == NULL && !readers->stopping) {
        pthread_cond_wait(&readers->work, &readers->lock);
    }
    struct wpk_http_exchange *oldest = readers->first;
    if (oldest != NULL) {
        readers->first = oldest->next;
        readers->last = oldest->next != NULL ? readers->last : NULL;
    }
    pthread_mutex_unlock(&readers->lock);
    return oldest;
}

static bool is_stopping(struct wpk_http_readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    bool stopping = readers->stopping;
    pthread_mutex_unlock(&readers->lock);
    return stopping;
}

static void *run(void *user)
{
    struct wpk_http_readers *readers = user;
    struct wpk_http_exchange *exchange;
    prctl(PR_SET_NAME, "http-reader"); /* as /proc and perf show it */
    while ((exchange = take_oldest(readers)) != NULL) {
        struct wpk_api_answer answer = {.status = 0};
        bool served = !is_stopping(readers) && wpk_http_exchange_serve(exchange, &answer);
        if (!served && !is_stopping(readers) && wpk_http_exchange_queue(exchange)) {
            continue;
        }
        if (!served) {
            WPK_HTTP_ENDING(&answer);
        }
        wpk_http_exchange_finish(exchange, &answer);
        wpk_api_answer_fini(&answer);
    }
    return NULL;
}

wpk_err wpk_http_readers_start(struct wpk_http_readers *readers, struct wpk_diag *diag)
{
    while (readers->count < WPK_HTTP_READERS) {
        int code = pthread_create(&readers->threads[readers->count], NULL, run, readers);
        if (code != 0) {
            return wpk_fail(diag, WPK_ESYSTEM, "no thread to read requests: %s%s", strerror(code),
                            wpk_fs_advice(code));
        }
        readers->count++;
    }
    return WPK_OK;
}

void wpk_http_readers_stop(struct wpk_http_readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    readers->stopping = true;
    pthread_cond_broadcast(&readers->work);
    pthread_mutex_unlock(&readers->lock);
    while (readers->count > 0) {
        pthread_join(readers->threads[--readers->count], NULL);
    }
}

bool wpk_http_readers_take(struct wpk_http_readers *readers, struct wpk_http_exchange *exchange)
{
    pthread_mutex_lock(&readers->lock);
    bool taken = !readers->stopping;
    if (taken) {
        exchange->next = NULL;
        *(readers->last != NULL ? &readers->last->next : &readers->first) = exchange;
        readers->last = exchange;
        suspend(exchange); /* before anybody can answer it */
        pthread_cond_signal(&readers->work);
    }
    pthread_mutex_unlock(&readers->lock);
    return taken;
}
