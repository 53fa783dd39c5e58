/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/effects/search_pool.h"

#include "common/fs.h"
#include "common/log.h"
#include "coordinator/effects/search_actor.h"
#include "search/strategy/strategy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define BUCKETS 256 /* of the table of searches: live ones are a few hundred */
#define THREADS_MAX 16
#define NICE 10   /* of the threads */
#define RETRY_S 1 /* after a read that failed, and may not fail again */

enum call_kind { CALL_ASK, CALL_TELL, CALL_CLOSE };

struct call {
    struct call *next;
    enum call_kind kind;
    uint32_t count;            /* ASK */
    uint32_t ask_first;        /* ASK: the search's asks so far */
    uint32_t number;           /* ASK: told so far; TELL: of the ask */
    struct wpk_work_item item; /* TELL: text owned */
};

/* One search. */
struct actor {
    struct actor *next_in_bucket; /* the loop's */
    struct wpk_search_spec spec;  /* op owned; not changed after it is made */
    uint64_t handle;
    uint64_t problem_id;
    /* guarded by the pool's lock: */
    struct actor *next_ready;
    struct call *first;
    struct call *last;
    bool busy; /* ready, or a thread has it */
    /* of the thread that has it: */
    struct wpk_search_actor *strategy; /* NULL: not made yet */
    struct call *early;                /* tells from before it was made, in their order */
    struct call *early_last;
    bool closed;
};

struct answer {
    struct answer *next;
    struct wpk_search_answer body;
};

struct worker {
    struct wpk_search_pool *pool;
    pthread_t thread;
    struct wpk_store *store; /* owned reader */
};

struct wpk_search_pool {
    struct wpk_search_pool_options options;
    struct actor *buckets[BUCKETS]; /* the loop's: by handle */
    struct worker workers[THREADS_MAX];
    int worker_count;     /* threads that were started */
    pthread_mutex_t lock; /* guards what follows, and what an actor says */
    pthread_cond_t work;
    pthread_cond_t retry; /* only when it stops, or a search is closed: no need to wait longer */
    struct actor *ready_first;
    struct actor *ready_last;
    struct answer *answer_first;
    struct answer *answer_last;
    bool stopping;
};

/* ---- answers */

static void push_answer(struct wpk_search_pool *pool, const struct wpk_search_answer *body)
{
    struct answer *answer = WPK_DEMAND(calloc(1, sizeof *answer));
    answer->body = *body;
    pthread_mutex_lock(&pool->lock);
    *(pool->answer_last != NULL ? &pool->answer_last->next : &pool->answer_first) = answer;
    pool->answer_last = answer;
    pthread_mutex_unlock(&pool->lock);
    if (pool->options.threads > 0) {
        pool->options.wake(pool->options.user);
    }
}

bool wpk_search_pool_take(struct wpk_search_pool *pool, struct wpk_search_answer *out)
{
    pthread_mutex_lock(&pool->lock);
    struct answer *answer = pool->answer_first;
    if (answer != NULL) {
        pool->answer_first = answer->next;
        pool->answer_last = pool->answer_first != NULL ? pool->answer_last : NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    if (answer == NULL) {
        return false;
    }
    *out = answer->body;
    free(answer);
    return true;
}

void wpk_search_answer_fini(struct wpk_search_answer *answer)
{
    wpk_asked_free(answer->asked);
    answer->asked = NULL;
    wpk_buf_fini(&answer->snapshot_text);
}

/* ---- calls, on a thread of the pool or, where there is none, on the caller's */

static void free_call(struct call *call)
{
    if (call != NULL) {
        free(call->item.text);
        free(call);
    }
}

static void drop_early(struct actor *actor)
{
    struct call *next;
    for (struct call *call = actor->early; call != NULL; call = next) {
        next = call->next;
        free_call(call);
    }
    actor->early = NULL;
    actor->early_last = NULL;
}

/* Results that were told before the strategy was made may not be durable yet. */
static void add_early(const struct actor *actor, struct wpk_history_log *log)
{
    for (const struct call *call = actor->early; call != NULL; call = call->next) {
        if (call->number < log->first || call->number - log->first >= log->count) {
            continue;
        }
        struct wpk_work_item *ask = &log->asks[call->number - log->first];
        ask->standing = WPK_STANDING_ENDED;
        ask->known = call->item.known;
        ask->trial = call->item.trial;
    }
}

/* From its snapshot; where that does not fit this program, from everything. */
static wpk_err make(struct actor *actor, struct wpk_store *store, uint32_t told_count,
                    struct wpk_diag *diag)
{
    const struct wpk_strategy_class *kind = wpk_strategy_find(actor->spec.key.strategy);
    wpk_err err = WPK_EMISMATCH;
    for (int whole = 0; err == WPK_EMISMATCH && whole < 2; whole++) {
        struct wpk_history_log log;
        wpk_history_read_log(store, actor->spec.search_id, whole == 1, &log);
        if (kind != NULL && kind->takes_relatives) {
            log.relative_count =
                wpk_history_relatives(store, actor->spec.search_id, log.relatives, &log.twin_count);
        }
        err = wpk_store_status(store);
        if (err == WPK_OK) {
            add_early(actor, &log);
            err = wpk_search_actor_new(&actor->spec, &log, told_count, &actor->strategy, diag);
        } else {
            err = wpk_store_take_status(store, diag);
        }
        wpk_history_log_fini(&log);
    }
    return err;
}

/* Not the search's fault: as often as it is tried, it may work the next time. */
static bool is_passing(wpk_err err)
{
    switch (err) {
    case WPK_ENOMEM:
    case WPK_ENOSPC:
    case WPK_EIO:
    case WPK_ETIMEDOUT:
    case WPK_EBUSY:
    case WPK_EACCES:
    case WPK_ESYSTEM:
        return true;
    default:
        return false;
    }
}

/* True after a while; false when nobody waits for the strategy any more. */
static bool wait_to_retry(struct wpk_search_pool *pool, const struct actor *actor)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RETRY_S;
    bool wanted;
    int code = 0;
    pthread_mutex_lock(&pool->lock);
    while ((wanted = !pool->stopping && (actor->last == NULL || actor->last->kind != CALL_CLOSE)) &&
           code == 0) {
        code = pthread_cond_timedwait(&pool->retry, &pool->lock, &until);
    }
    pthread_mutex_unlock(&pool->lock);
    return wanted;
}

/* A job is not to fail because the disk did, for a moment. Without threads nobody can wait. */
static wpk_err make_at_last(struct wpk_search_pool *pool, struct actor *actor,
                            struct wpk_store *store, uint32_t told_count, struct wpk_diag *diag)
{
    wpk_err err = make(actor, store, told_count, diag);
    while (pool->options.threads > 0 && is_passing(err)) {
        wpk_log_failure(WPK_LOG_WARN, "search_not_read", err, diag);
        if (!wait_to_retry(pool, actor)) {
            break;
        }
        *diag = (struct wpk_diag){0};
        err = make(actor, store, told_count, diag);
    }
    drop_early(actor);
    return err;
}

static void answer_ask(struct wpk_search_pool *pool, struct actor *actor, struct wpk_store *store,
                       const struct call *call)
{
    struct wpk_search_answer answer = {.handle = actor->handle,
                                       .search_id = actor->spec.search_id,
                                       .problem_id = actor->problem_id,
                                       .ask_first = call->ask_first};
    struct wpk_asked *asked = calloc(1, sizeof *asked);
    struct wpk_diag diag = {0};
    WPK_ASSERT(asked != NULL && call->count <= WPK_ASKED_MAX);
    memcpy(answer.providers, actor->spec.key.providers, sizeof answer.providers);
    if (actor->strategy == NULL) {
        asked->err = make_at_last(pool, actor, store, call->number, &diag);
    }
    if (asked->err == WPK_OK) {
        struct wpk_search_actor *strategy = actor->strategy;
        asked->items = WPK_DEMAND(calloc(call->count + 1, sizeof *asked->items));
        asked->size_log2 = wpk_search_actor_size_log2(strategy);
        wpk_err err = wpk_search_actor_ask(strategy, call->count, asked->items, &asked->count);
        while (err == WPK_ENOMEM && pool->options.threads > 0 && wait_to_retry(pool, actor)) {
            err = wpk_search_actor_ask(strategy, call->count, asked->items, &asked->count);
        }
        asked->exhausted = err == WPK_EEXHAUSTED;
        asked->refused = err == WPK_OK && asked->count == 0;
        asked->err = asked->exhausted ? WPK_OK : err;
    }
    snprintf(asked->reason, sizeof asked->reason, "%.255s",
             diag.text[0] != '\0' ? diag.text : wpk_err_text(asked->err));
    answer.asked = asked;
    push_answer(pool, &answer);
}

/* Answer with a snapshot if it covers at least `tells_min` tells more than the last one. */
static void answer_snapshot(struct wpk_search_pool *pool, struct actor *actor, uint32_t tells_min)
{
    struct wpk_search_answer answer = {.handle = actor->handle, .search_id = actor->spec.search_id};
    if (actor->strategy != NULL && wpk_search_actor_save(actor->strategy, tells_min,
                                                         &answer.snapshot, &answer.snapshot_text)) {
        answer.snapshot.search_id = actor->spec.search_id;
        push_answer(pool, &answer);
    }
}

/* True when the call was kept. */
static bool tell(struct wpk_search_pool *pool, struct actor *actor, struct call *call)
{
    if (actor->strategy != NULL) {
        wpk_search_actor_tell(actor->strategy, call->number, &call->item);
        answer_snapshot(pool, actor, WPK_SNAPSHOT_TELLS);
        return false;
    }
    call->next = NULL;
    *(actor->early_last != NULL ? &actor->early_last->next : &actor->early) = call;
    actor->early_last = call;
    return true;
}

static void answer_call(struct wpk_search_pool *pool, struct actor *actor, struct wpk_store *store,
                        struct call *call)
{
    bool kept = false;
    switch (call->kind) {
    case CALL_ASK:
        answer_ask(pool, actor, store, call);
        break;
    case CALL_TELL:
        kept = tell(pool, actor, call);
        break;
    case CALL_CLOSE:
        answer_snapshot(pool, actor, 1);
        actor->closed = true;
        break;
    }
    if (!kept) {
        free_call(call);
    }
}

static void free_actor(struct actor *actor)
{
    struct call *next;
    for (struct call *call = actor->first; call != NULL; call = next) {
        next = call->next;
        free_call(call);
    }
    drop_early(actor);
    wpk_search_actor_free(actor->strategy);
    free(actor->spec.op);
    free(actor);
}

/* With the lock, which is given away meanwhile: every call that waits on it. */
static void serve(struct wpk_search_pool *pool, struct actor *actor, struct wpk_store *store)
{
    while (actor->first != NULL && !actor->closed) {
        struct call *call = actor->first;
        actor->first = call->next;
        actor->last = actor->first != NULL ? actor->last : NULL;
        pthread_mutex_unlock(&pool->lock);
        answer_call(pool, actor, store, call);
        pthread_mutex_lock(&pool->lock);
    }
    actor->busy = false;
    if (actor->closed) {
        free_actor(actor); /* the loop forgot it when it closed it */
    }
}

static void *run_thread(void *user)
{
    struct worker *worker = user;
    struct wpk_search_pool *pool = worker->pool;
    prctl(PR_SET_NAME, "strategy"); /* as /proc and perf show it */
    /* of this thread: what learns gives way to what is timed on this machine */
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct actor *actor = pool->ready_first;
        if (pool->stopping) {
            break;
        }
        if (actor == NULL) {
            pthread_cond_wait(&pool->work, &pool->lock);
            continue;
        }
        pool->ready_first = actor->next_ready;
        pool->ready_last = pool->ready_first != NULL ? pool->ready_last : NULL;
        serve(pool, actor, worker->store);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- the loop's side */

static struct actor *find(const struct wpk_search_pool *pool, uint64_t handle)
{
    struct actor *actor = pool->buckets[handle % BUCKETS];
    while (actor != NULL && actor->handle != handle) {
        actor = actor->next_in_bucket;
    }
    return actor;
}

static struct actor *find_or_make(struct wpk_search_pool *pool, const struct wpk_search *search)
{
    struct actor *actor = find(pool, search->handle);
    if (actor != NULL) {
        return actor;
    }
    actor = WPK_DEMAND(calloc(1, sizeof *actor));
    WPK_ASSERT(search->id != 0);
    actor->handle = search->handle;
    actor->problem_id = search->problem_id;
    actor->spec = (struct wpk_search_spec){.search_id = search->id,
                                           .key = search->key,
                                           .op = strdup(search->op),
                                           .device = search->device};
    WPK_ASSERT(actor->spec.op != NULL);
    actor->next_in_bucket = pool->buckets[search->handle % BUCKETS];
    pool->buckets[search->handle % BUCKETS] = actor;
    return actor;
}

/* `call` is taken. */
static void put(struct wpk_search_pool *pool, struct actor *actor, struct call *call)
{
    pthread_mutex_lock(&pool->lock);
    *(actor->last != NULL ? &actor->last->next : &actor->first) = call;
    actor->last = call;
    if (!actor->busy) {
        actor->busy = true;
        actor->next_ready = NULL;
        if (pool->options.threads == 0) {
            serve(pool, actor, pool->options.store);
        } else {
            *(pool->ready_last != NULL ? &pool->ready_last->next_ready : &pool->ready_first) =
                actor;
            pool->ready_last = actor;
            pthread_cond_signal(&pool->work);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

static struct call *new_call(enum call_kind kind)
{
    struct call *call = WPK_DEMAND(calloc(1, sizeof *call));
    call->kind = kind;
    return call;
}

void wpk_search_pool_ask(struct wpk_search_pool *pool, const struct wpk_search *search,
                         uint32_t count)
{
    struct call *call = new_call(CALL_ASK);
    call->count = count;
    call->ask_first = search->ask_count;
    call->number = search->told_count;
    put(pool, find_or_make(pool, search), call);
}

void wpk_search_pool_tell(struct wpk_search_pool *pool, const struct wpk_search *search,
                          uint32_t number, const struct wpk_work_item *item)
{
    struct call *call = new_call(CALL_TELL);
    call->number = number;
    call->item = *item;
    call->item.text = WPK_DEMAND(strdup(item->text));
    put(pool, find_or_make(pool, search), call);
}

void wpk_search_pool_close(struct wpk_search_pool *pool, uint64_t handle)
{
    struct actor *actor = find(pool, handle);
    if (actor == NULL) {
        return;
    }
    struct actor **at = &pool->buckets[handle % BUCKETS];
    while (*at != actor) {
        at = &(*at)->next_in_bucket;
    }
    *at = actor->next_in_bucket;
    put(pool, actor, new_call(CALL_CLOSE));
    pthread_cond_broadcast(&pool->retry);
}

/* ---- life */

static wpk_err start_thread(struct wpk_search_pool *pool, struct wpk_diag *diag)
{
    struct worker *worker = &pool->workers[pool->worker_count];
    worker->pool = pool;
    wpk_err err =
        wpk_store_open_reader(pool->options.data_dir, pool->options.clock, &worker->store, diag);
    if (err != WPK_OK) {
        return err;
    }
    int code = pthread_create(&worker->thread, NULL, run_thread, worker);
    if (code != 0) {
        wpk_store_close(worker->store);
        return wpk_fail(diag, WPK_ESYSTEM, "no thread for the strategies: %s%s", strerror(code),
                        wpk_fs_advice(code));
    }
    pool->worker_count++;
    return WPK_OK;
}

static void init_retry(pthread_cond_t *retry)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(retry, &attributes);
    pthread_condattr_destroy(&attributes);
}

wpk_err wpk_search_pool_new(const struct wpk_search_pool_options *options,
                            struct wpk_search_pool **out, struct wpk_diag *diag)
{
    struct wpk_search_pool *pool = WPK_DEMAND(calloc(1, sizeof *pool));
    WPK_ASSERT(options->threads <= THREADS_MAX);
    pool->options = *options;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    init_retry(&pool->retry);
    wpk_err err = WPK_OK;
    for (int i = 0; err == WPK_OK && i < options->threads; i++) {
        err = start_thread(pool, diag);
    }
    if (err != WPK_OK) {
        wpk_search_pool_free(pool);
        return err;
    }
    *out = pool;
    return WPK_OK;
}

void wpk_search_pool_free(struct wpk_search_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_cond_broadcast(&pool->retry);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->worker_count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
        wpk_store_close(pool->workers[i].store);
    }
    /* Those that were closed but not served are ready and in no bucket any more. */
    for (struct actor *actor = pool->ready_first, *next; actor != NULL; actor = next) {
        next = actor->next_ready;
        if (find(pool, actor->handle) != actor) {
            free_actor(actor);
        }
    }
    for (int i = 0; i < BUCKETS; i++) {
        for (struct actor *actor = pool->buckets[i], *next; actor != NULL; actor = next) {
            next = actor->next_in_bucket;
            free_actor(actor);
        }
    }
    struct wpk_search_answer answer;
    while (wpk_search_pool_take(pool, &answer)) {
        wpk_search_answer_fini(&answer);
    }
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->retry);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
