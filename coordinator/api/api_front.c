/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_front.h"

#include "common/log.h"
#include "coordinator/api/api_call.h"
#include "coordinator/api/api_change.h"
#include "coordinator/api/page_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A refused client and the reason; at most one line a minute is written for it. */
struct refusal {
    struct wpk_audit audit;
    uint64_t count;   /* since it was written */
    uint64_t next_ns; /* when it may be written; 0: now */
};

struct wpk_api_front {
    struct wpk_api_front_options options;
    struct wpk_page_cache *pages; /* owned */
    pthread_mutex_t lock;         /* guards what follows; nothing else is locked while it is held */
    struct wpk_store *idle[WPK_API_READERS_MAX]; /* owned; [idle_count] */
    uint32_t idle_count;
    uint32_t open_count;                           /* idle ones, and those that were taken */
    pthread_cond_t given;                          /* one is idle, or may be opened */
    struct refusal refusals[WPK_API_REFUSALS_MAX]; /* [refusal_count] */
    uint32_t refusal_count;
    uint64_t untold; /* refusals that found no room */
    uint32_t large_count;
};

struct wpk_api_front *wpk_api_front_new(const struct wpk_api_front_options *options)
{
    struct wpk_api_front *front = WPK_DEMAND(calloc(1, sizeof *front));
    front->options = *options;
    front->pages = wpk_page_cache_new();
    pthread_mutex_init(&front->lock, NULL);
    pthread_cond_init(&front->given, NULL);
    return front;
}

void wpk_api_front_free(struct wpk_api_front *front)
{
    if (front == NULL) {
        return;
    }
    WPK_ASSERT(front->idle_count == front->open_count);
    for (uint32_t i = 0; i < front->idle_count; i++) {
        wpk_store_close(front->idle[i]);
    }
    wpk_page_cache_free(front->pages);
    pthread_cond_destroy(&front->given);
    pthread_mutex_destroy(&front->lock);
    free(front);
}

const struct wpk_api_front_options *wpk_api_front_options(const struct wpk_api_front *front)
{
    return &front->options;
}

struct wpk_page_cache *wpk_api_front_pages(struct wpk_api_front *front)
{
    return front->pages;
}

/* ---- readers */

struct wpk_store *wpk_api_front_take(struct wpk_api_front *front, struct wpk_diag *diag)
{
    struct wpk_store *store = NULL;
    pthread_mutex_lock(&front->lock);
    while (front->idle_count == 0 && front->open_count == WPK_API_READERS_MAX) {
        pthread_cond_wait(&front->given, &front->lock);
    }
    if (front->idle_count > 0) {
        store = front->idle[--front->idle_count];
    } else {
        front->open_count++;
    }
    pthread_mutex_unlock(&front->lock);
    if (store != NULL) {
        return store;
    }
    wpk_err err =
        wpk_store_open_reader(front->options.data_dir, front->options.clock, &store, diag);
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_WARN, "reader_not_opened", err, diag);
        pthread_mutex_lock(&front->lock);
        front->open_count--;
        pthread_cond_signal(&front->given);
        pthread_mutex_unlock(&front->lock);
        return NULL;
    }
    return store;
}

void wpk_api_front_give(struct wpk_api_front *front, struct wpk_store *store)
{
    pthread_mutex_lock(&front->lock);
    WPK_ASSERT(front->idle_count < front->open_count);
    front->idle[front->idle_count++] = store;
    pthread_cond_signal(&front->given);
    pthread_mutex_unlock(&front->lock);
}

/* ---- large requests */

bool wpk_api_front_begin_large(struct wpk_call *call)
{
    struct wpk_api_front *front = call->api->front;
    pthread_mutex_lock(&front->lock);
    bool begun = front->large_count < WPK_API_LARGE_MAX;
    front->large_count += begun;
    pthread_mutex_unlock(&front->lock);
    if (!begun) {
        wpk_call_problem(call, 503, WPK_EBUSY, "",
                         "other large requests are being read; ask again later");
    }
    return begun;
}

void wpk_api_front_end_large(struct wpk_api_front *front, bool begun)
{
    pthread_mutex_lock(&front->lock);
    front->large_count -= begun;
    pthread_mutex_unlock(&front->lock);
}

/* ---- refusals */

static bool is_same(const struct wpk_audit *a, const struct wpk_audit *b)
{
    return strcmp(a->actor, b->actor) == 0 && strcmp(a->token, b->token) == 0 &&
           strcmp(a->peer, b->peer) == 0 && strcmp(a->detail, b->detail) == 0;
}

void wpk_api_front_refuse(struct wpk_api_front *front, const struct wpk_identity *identity,
                          const char *reason, uint64_t untold)
{
    struct wpk_audit audit = {.action = "auth.refused"};
    memcpy(audit.actor, identity->owner, sizeof audit.actor);
    memcpy(audit.token, identity->token_id, sizeof audit.token);
    memcpy(audit.peer, identity->peer, sizeof audit.peer);
    snprintf(audit.detail, sizeof audit.detail, "%.200s", reason);
    pthread_mutex_lock(&front->lock);
    front->untold += untold;
    uint32_t i = 0;
    while (i < front->refusal_count && !is_same(&front->refusals[i].audit, &audit)) {
        i++;
    }
    if (i == WPK_API_REFUSALS_MAX) {
        front->untold++;
    } else if (i < front->refusal_count) {
        front->refusals[i].count++;
    } else {
        front->refusals[front->refusal_count++] = (struct refusal){.audit = audit, .count = 1};
    }
    pthread_mutex_unlock(&front->lock);
}

bool wpk_call_admit(struct wpk_call *call, enum wpk_auth_role role)
{
    struct wpk_diag diag = {0};
    if (wpk_identity_may(&call->request->identity, role, &diag)) {
        return true;
    }
    wpk_api_problem(call->answer, 403, WPK_EACCES, &diag);
    if (call->api->front != NULL) {
        wpk_api_front_refuse(call->api->front, &call->request->identity, diag.text, 0);
    }
    return false;
}

/* Those whose time has come, in `out`; who was refused no more makes room. */
static uint32_t take_refusals(struct wpk_api_front *front, uint64_t now_ns,
                              struct wpk_audit out[WPK_API_REFUSALS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = front->refusal_count; i-- > 0;) {
        struct refusal *refusal = &front->refusals[i];
        if (now_ns < refusal->next_ns) {
            continue;
        }
        if (refusal->count == 0) {
            *refusal = front->refusals[--front->refusal_count];
            continue;
        }
        uint64_t more = refusal->count - 1 + front->untold;
        out[count] = refusal->audit;
        if (more > 0) {
            snprintf(out[count].subject, sizeof out[count].subject, "and %llu more before it",
                     (unsigned long long)more);
        }
        count++;
        front->untold = 0;
        refusal->count = 0;
        refusal->next_ns = now_ns + WPK_API_REFUSAL_NS;
    }
    return count;
}

void wpk_api_front_tell(struct wpk_api_front *front, struct wpk_executor *executor)
{
    struct wpk_audit refusals[WPK_API_REFUSALS_MAX];
    uint64_t now_ns = wpk_clock_now_ns(front->options.clock);
    pthread_mutex_lock(&front->lock);
    uint32_t count = take_refusals(front, now_ns, refusals);
    pthread_mutex_unlock(&front->lock);
    for (uint32_t i = 0; i < count; i++) {
        wpk_change_put_audit(executor, &refusals[i], WPK_EACCES);
    }
}
