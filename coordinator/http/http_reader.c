/* SPDX-License-Identifier: Apache-2.0 */
/* Large requests are served on threads of their own: a job of a megabyte takes seconds to decode,
 * and other connections of the same library thread would wait as long. */
#include "common/fs.h"
#include "coordinator/http/http_parts.h"

#include <string.h>
#include <sys/prctl.h>

static void answer_ending(struct wpk_http_exchange *exchange)
{
    wpk_http_exchange_finish(exchange, &wpk_http_ending);
}

static void read_one(struct wpk_http_exchange *exchange)
{
    struct wpk_http_response response = {.body = ""};
    if (wpk_http_exchange_serve(exchange, &response)) {
        wpk_http_exchange_finish(exchange, &response);
    } else if (!wpk_http_exchange_queue(exchange)) {
        answer_ending(exchange);
    }
}

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
        if (is_stopping(readers)) {
            answer_ending(exchange);
        } else {
            read_one(exchange);
        }
    }
    return NULL;
}

wpk_err wpk_http_readers_start(struct wpk_http_readers *readers, struct wpk_diag *diag)
{
    while (readers->count < WPK_HTTP_READERS) {
        int code = pthread_create(&readers->threads[readers->count], NULL, run, readers);
        if (code != 0) {
            wpk_diag_set(diag, "no thread to read requests: %s%s", strerror(code),
                         wpk_fs_advice(code));
            return WPK_ESYSTEM;
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
        if (readers->last != NULL) {
            readers->last->next = exchange;
        } else {
            readers->first = exchange;
        }
        readers->last = exchange;
        wpk_http_exchange_suspend(exchange); /* before anybody can answer it */
        pthread_cond_signal(&readers->work);
    }
    pthread_mutex_unlock(&readers->lock);
    return taken;
}
