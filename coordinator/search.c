/* SPDX-License-Identifier: Apache-2.0 */
/* Searches: bound to operators, opened from the store, asked, told, and brought to their end.
 *
 * The strategy itself lives outside (search_actor.c); what is known of its asks is in asks.c. */
#include "common/utf8.h"
#include "coordinator/parts.h"
#include "search/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENED_MAX 256 /* searches that one step opens; what is left over waits for the next tick */

/* How candidates are timed; its text in the store's key is made by history.c. */
static const struct wpk_policy default_policy = {
    .threads = 1,
    .cold_cache = false,
    .time_ns_min = 20 * 1000 * 1000,
    .sample_count = 10,
    .race_ratio = 1.3,
};

static void search_free(struct wpk_search *search)
{
    wpk_asks_fini(search);
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        free(search->vendors[i].text);
    }
    wpk_final_fini(search);
    free(search->op);
    free(search);
}

struct wpk_search *wpk_search_find(struct wpk_coordinator *c, uint64_t id)
{
    for (uint32_t i = 0; id != 0 && i < c->search_count; i++) {
        if (c->searches[i]->id == id) {
            return c->searches[i];
        }
    }
    return NULL;
}

struct wpk_search *wpk_search_find_handle(struct wpk_coordinator *c, uint64_t handle)
{
    for (uint32_t i = 0; i < c->search_count; i++) {
        if (c->searches[i]->handle == handle) {
            return c->searches[i];
        }
    }
    return NULL;
}

const char *wpk_search_own_provider(struct wpk_coordinator *c, const struct wpk_search *search)
{
    size_t size = strcspn(search->key.providers, ";");
    char *name = wpk_effect_memory(c, size + 1, 1);
    memcpy(name, search->key.providers, size);
    return name;
}

/* ---- binding */

bool wpk_worker_suits(const struct wpk_worker *worker, const struct wpk_job_entry *job)
{
    return strcmp(worker->hello.device.kind, job->kind) == 0 &&
           worker->hello.device.core_count >= job->threads;
}

/* The worker's providers as a key has them: in its own order, which is fixed by its build. */
static void providers_text(const struct wpk_hello *hello, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < hello->provider_count && at < size; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? ";" : "",
                               hello->providers[i].name);
    }
}

bool wpk_search_serves(const struct wpk_search *search, const struct wpk_worker *worker)
{
    char providers[WPK_KEY_TEXT_MAX];
    providers_text(&worker->hello, providers, sizeof providers);
    return strcmp(search->key.device_class, worker->device_class) == 0 &&
           strcmp(search->key.environment, worker->hello.environment) == 0 &&
           strcmp(search->key.providers, providers) == 0 &&
           worker->hello.device.core_count >= search->key.threads;
}

static bool keys_equal(const struct wpk_search_key *a, const struct wpk_search_key *b)
{
    return strcmp(a->fingerprint, b->fingerprint) == 0 && strcmp(a->layouts, b->layouts) == 0 &&
           strcmp(a->device_class, b->device_class) == 0 &&
           strcmp(a->environment, b->environment) == 0 && a->threads == b->threads &&
           strcmp(a->strategy, b->strategy) == 0 && strcmp(a->parameters, b->parameters) == 0 &&
           a->seed == b->seed && strcmp(a->providers, b->providers) == 0 &&
           strcmp(a->space_version, b->space_version) == 0;
}

static void make_key(const struct wpk_job_entry *job, const struct wpk_job_op_state *op,
                     const struct wpk_worker *worker, struct wpk_search_key *key)
{
    memset(key, 0, sizeof *key);
    snprintf(key->fingerprint, sizeof key->fingerprint, "%s", op->fingerprint);
    snprintf(key->layouts, sizeof key->layouts, "%s", op->layouts);
    snprintf(key->device_class, sizeof key->device_class, "%s", worker->device_class);
    snprintf(key->environment, sizeof key->environment, "%s", worker->hello.environment);
    key->threads = job->threads;
    snprintf(key->strategy, sizeof key->strategy, "%s", job->strategy);
    snprintf(key->parameters, sizeof key->parameters, "%s", job->parameters);
    key->seed = job->seed;
    providers_text(&worker->hello, key->providers, sizeof key->providers);
    snprintf(key->space_version, sizeof key->space_version, "%s", WPK_SPACE_VERSION);
}

static struct wpk_search *search_new(struct wpk_coordinator *c, const struct wpk_search_key *key,
                                     const struct wpk_job_op_state *op,
                                     const struct wpk_worker *worker)
{
    if (c->search_count == c->search_capacity) {
        uint32_t capacity = c->search_capacity == 0 ? 64 : c->search_capacity * 2;
        struct wpk_search **grown = realloc(c->searches, capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        c->searches = grown;
        c->search_capacity = capacity;
    }
    struct wpk_search *search = calloc(1, sizeof *search);
    WPK_ASSERT(search != NULL);
    search->handle = c->handle_next++;
    search->key = *key;
    snprintf(search->family, sizeof search->family, "%s", op->family);
    search->op = strdup(op->op);
    WPK_ASSERT(search->op != NULL);
    search->flops = op->flops;
    search->device = worker->hello.device;
    search->policy = default_policy;
    search->policy.threads = key->threads;
    c->searches[c->search_count++] = search;
    c->opened_count++;
    wpk_effect_add(c, WPK_EFFECT_OPEN_SEARCH)->search = search;
    return search;
}

void wpk_search_update_budget(struct wpk_coordinator *c, struct wpk_search *search)
{
    search->candidates = 0;
    search->time_ns = 0;
    for (uint32_t j = 0; j < c->job_count; j++) {
        const struct wpk_job_entry *job = c->jobs[j];
        for (uint32_t i = 0; i < job->op_count; i++) {
            if (job->ops[i].search != search || wpk_phase_ended(job->ops[i].phase)) {
                continue;
            }
            if (job->candidates > search->candidates) {
                search->candidates = job->candidates;
            }
            if (job->time_ns > search->time_ns) {
                search->time_ns = job->time_ns;
            }
        }
    }
}

/* What a finished search holds is enough for this budget. */
static bool is_covered(const struct wpk_search *search, uint32_t candidates, uint64_t time_ns)
{
    return search->kernel_id != 0 &&
           (search->ended_asks >= candidates || search->elapsed_ns >= time_ns ||
            (search->exhausted && search->ended_asks == search->ask_count));
}

/* The operator joins a search that is open. */
static void join(struct wpk_coordinator *c, struct wpk_job_entry *job, uint32_t index)
{
    struct wpk_job_op_state *op = &job->ops[index];
    struct wpk_search *search = op->search;
    bool idle = search->phase == WPK_PHASE_WAITING || wpk_phase_ended(search->phase);
    if (idle && is_covered(search, job->candidates, job->time_ns)) {
        op->kernel_id = search->kernel_id;
        op->from_history = true;
        wpk_job_op_set(c, job, index, WPK_PHASE_DONE, "");
        wpk_search_update_budget(c, search);
        return;
    }
    wpk_search_update_budget(c, search);
    if (idle) {
        search->phase = WPK_PHASE_SEARCHING;
        search->reason[0] = '\0';
    }
    wpk_job_op_set(c, job, index, search->phase, "");
}

void wpk_search_bind(struct wpk_coordinator *c, const struct wpk_worker *worker)
{
    if (worker->draining) {
        return;
    }
    for (uint32_t j = 0; j < c->job_count; j++) {
        struct wpk_job_entry *job = c->jobs[j];
        for (uint32_t i = 0; i < job->op_count; i++) {
            struct wpk_job_op_state *op = &job->ops[i];
            if (op->search != NULL || wpk_phase_ended(op->phase) ||
                !wpk_worker_suits(worker, job)) {
                continue;
            }
            struct wpk_search_key key;
            make_key(job, op, worker, &key);
            for (uint32_t s = 0; s < c->search_count; s++) {
                if (keys_equal(&c->searches[s]->key, &key)) {
                    op->search = c->searches[s];
                }
            }
            if (op->search == NULL && c->opened_count == OPENED_MAX) {
                c->unbound = true;
                return;
            }
            if (op->search == NULL) {
                op->search = search_new(c, &key, op, worker);
                wpk_search_update_budget(c, op->search);
            } else if (op->search->id != 0) {
                join(c, job, i);
            }
        }
    }
}

/* ---- what the store and the strategy answer */

void wpk_opened_free(struct wpk_opened *opened)
{
    if (opened == NULL) {
        return;
    }
    for (uint32_t i = 0; i < opened->best_count; i++) {
        free(opened->best[i].candidate);
    }
    for (uint32_t i = 0; i < opened->vendor_count; i++) {
        free(opened->vendors[i].text);
    }
    wpk_pieces_free(opened->window, opened->ask_count - opened->told_count);
    free(opened);
}

void wpk_asked_free(struct wpk_asked *asked)
{
    if (asked != NULL) {
        wpk_pieces_free(asked->items, asked->count);
        free(asked);
    }
}

/* What was recorded of its asks. */
static void take_asks(struct wpk_coordinator *c, struct wpk_search *search,
                      struct wpk_opened *opened)
{
    uint32_t count = opened->ask_count - opened->told_count;
    search->told_count = opened->told_count;
    search->ask_count = opened->told_count;
    search->open_first = opened->told_count;
    search->ok_count = opened->ok_count;
    search->failed_count = opened->failed_count;
    search->known_count = opened->known_count;
    memcpy(search->outcomes, opened->outcomes, sizeof search->outcomes);
    memcpy(search->best, opened->best, sizeof search->best);
    search->best_count = opened->best_count;
    opened->best_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        wpk_asks_add(search, &opened->window[i]);
    }
    free(opened->window);
    opened->window = NULL;
    opened->ask_count = opened->told_count;
    wpk_asks_tell(c, search);
}

void wpk_search_opened(struct wpk_coordinator *c)
{
    struct wpk_search *search = wpk_search_find_handle(c, c->event->handle);
    struct wpk_opened *opened = c->event->opened;
    if (search == NULL) {
        return;
    }
    WPK_ASSERT(search->id == 0);
    search->id = opened->search_id;
    search->problem_id = opened->problem_id;
    search->elapsed_ns = opened->elapsed_ns;
    search->ended_asks = opened->ended_asks;
    search->exhausted = opened->exhausted;
    search->kernel_id = opened->kernel_id;
    search->served_kernel_id = opened->served_kernel_id;
    memcpy(search->served_provider, opened->served_provider, sizeof search->served_provider);
    memcpy(search->served_artifact, opened->served_artifact, sizeof search->served_artifact);
    memcpy(search->vendors, opened->vendors, sizeof search->vendors);
    search->vendor_count = opened->vendor_count;
    opened->vendor_count = 0;
    take_asks(c, search, opened);
    for (uint32_t j = 0; j < c->job_count; j++) {
        for (uint32_t i = 0; i < c->jobs[j]->op_count; i++) {
            const struct wpk_job_op_state *op = &c->jobs[j]->ops[i];
            if (op->search == search && !wpk_phase_ended(op->phase)) {
                join(c, c->jobs[j], i);
            }
        }
    }
    wpk_search_advance(c, search);
}

void wpk_search_asked(struct wpk_coordinator *c)
{
    struct wpk_search *search = wpk_search_find_handle(c, c->event->handle);
    struct wpk_asked *asked = c->event->asked;
    if (search == NULL) {
        return;
    }
    WPK_ASSERT(search->asking);
    search->asking = false;
    search->refused = asked->refused;
    search->exhausted = search->exhausted || asked->exhausted;
    search->size_log2 = asked->size_log2;
    for (uint32_t i = 0; i < asked->count; i++) {
        wpk_asks_add(search, &asked->items[i]);
    }
    free(asked->items);
    asked->items = NULL;
    asked->count = 0;
    if (asked->err != WPK_OK) {
        wpk_search_set_phase(c, search, WPK_PHASE_FAILED, asked->reason);
        return;
    }
    wpk_asks_tell(c, search);
    wpk_search_advance(c, search);
}

bool wpk_search_want(struct wpk_coordinator *c, struct wpk_search *search, uint32_t count)
{
    if (search->asking) {
        return true;
    }
    if (search->phase != WPK_PHASE_SEARCHING || search->refused || search->exhausted ||
        search->ask_count >= search->candidates ||
        search->ask_count - search->told_count > WPK_WINDOW_MAX - WPK_ASKED_MAX ||
        wpk_search_time_over(search, c->event->now_ns)) {
        return false;
    }
    uint32_t room = search->candidates - search->ask_count;
    uint32_t most = room < WPK_ASKED_MAX ? room : WPK_ASKED_MAX;
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_ASK);
    effect->search = search;
    effect->count = count < most ? count : most;
    search->asking = true;
    return true;
}

/* ---- results */

struct wpk_piece *wpk_search_piece(struct wpk_search *search, wpk_work_id work)
{
    switch (work.kind) {
    case WPK_WORK_TRIAL:
        return wpk_search_ask(search, work.index);
    case WPK_WORK_VENDOR:
        return work.index < search->vendor_count ? &search->vendors[work.index] : NULL;
    case WPK_WORK_FINAL:
        return search->phase == WPK_PHASE_FINALS && work.index == search->final_number
                   ? &search->final
                   : NULL;
    case WPK_WORK_VERIFY:
        return search->phase == WPK_PHASE_VERIFYING && work.index == search->verify_number
                   ? &search->verify
                   : NULL;
    case WPK_WORK_COUNT:
        break;
    }
    return NULL;
}

static struct wpk_trial_summary summarize(const struct wpk_record *record)
{
    struct wpk_trial_summary trial = {
        .outcome = record->outcome,
        .reference_ns = record->reference_ns,
        .error_max = record->error_max,
        .error_tolerance = record->error_tolerance,
    };
    if (record->outcome == WPK_OUTCOME_OK) {
        trial.median_ns = record->timing.median_ns;
        trial.min_ns = record->timing.min_ns;
        trial.mad_ns = record->timing.mad_ns;
        trial.censored = record->timing.censored;
        memcpy(trial.artifact_sha256, record->artifact_sha256, sizeof trial.artifact_sha256);
    }
    return trial;
}

static void note_failure(struct wpk_search *search, const struct wpk_record *record)
{
    if (record->outcome != WPK_OUTCOME_OK && record->log[0] != '\0') {
        size_t size = strcspn(record->log, "\n");
        size = size < sizeof search->failure ? size : sizeof search->failure - 1;
        size = wpk_utf8_check(record->log, size); /* no half character */
        snprintf(search->failure, sizeof search->failure, "%.*s", (int)size, record->log);
        for (char *p = search->failure; *p != '\0'; p++) {
            *p = (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p; /* it is shown on terminals */
        }
    }
}

void wpk_search_ended(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                      const struct wpk_record *record, const struct wpk_worker *worker)
{
    struct wpk_piece *piece = wpk_search_piece(search, work);
    WPK_ASSERT(piece != NULL);
    WPK_ASSERT(work.kind != WPK_WORK_FINAL);
    WPK_ASSERT(piece->standing == WPK_STANDING_OPEN); /* its lease has ended */
    piece->standing = WPK_STANDING_ENDED;
    piece->trial = summarize(record);
    if (work.kind == WPK_WORK_VERIFY) {
        wpk_final_verified(c, search, record, worker);
        return;
    }
    search->measured = true;
    bool own = work.kind == WPK_WORK_TRIAL;
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_TRIAL);
    effect->search = search;
    effect->work = work;
    effect->provider = own ? wpk_search_own_provider(c, search) : wpk_effect_text(c, piece->text);
    effect->piece = wpk_piece_copy(c, piece, own ? piece->text : "");
    effect->record = record;
    effect->worker = worker;
    if (own) {
        note_failure(search, record);
        wpk_asks_count(search, work.index);
        wpk_asks_tell(c, search);
    }
    wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
}

/* ---- the course of a search */

uint64_t wpk_search_elapsed_ns(const struct wpk_search *search, uint64_t now_ns)
{
    uint64_t since =
        search->active_ns != 0 && now_ns > search->active_ns ? now_ns - search->active_ns : 0;
    return search->elapsed_ns + since;
}

bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns)
{
    return wpk_search_elapsed_ns(search, now_ns) >= search->time_ns;
}

void wpk_search_set_phase(struct wpk_coordinator *c, struct wpk_search *search,
                          enum wpk_phase phase, const char *reason)
{
    search->phase = phase;
    snprintf(search->reason, sizeof search->reason, "%s", reason);
    if (wpk_phase_ended(phase)) {
        search->elapsed_ns = wpk_search_elapsed_ns(search, c->event->now_ns);
        search->active_ns = 0;
        wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
    }
    bool unsatisfied = false;
    for (uint32_t j = 0; j < c->job_count; j++) {
        struct wpk_job_entry *job = c->jobs[j];
        for (uint32_t i = 0; i < job->op_count; i++) {
            if (job->ops[i].search != search || wpk_phase_ended(job->ops[i].phase)) {
                continue;
            }
            bool done = phase == WPK_PHASE_DONE;
            bool joined_late = done && !is_covered(search, job->candidates, job->time_ns);
            unsatisfied = unsatisfied || joined_late;
            job->ops[i].kernel_id = done && !joined_late ? search->kernel_id : 0;
            job->ops[i].from_history = done && !search->measured;
            wpk_job_op_set(c, job, i, joined_late ? WPK_PHASE_SEARCHING : phase, reason);
        }
    }
    if (unsatisfied) {
        /* A job with a larger budget came while the finals went on: the search goes on for it. */
        search->phase = WPK_PHASE_SEARCHING;
        wpk_search_update_budget(c, search);
    }
}

static bool vendors_ended(const struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        if (search->vendors[i].standing != WPK_STANDING_ENDED) {
            return false;
        }
    }
    return true;
}

/* Is the search over? Once time is up, asks that nobody has started stay open, for a later job. */
static bool is_over(const struct wpk_search *search, uint64_t now_ns)
{
    if (search->asking || search->leased_count > 0 || !vendors_ended(search)) {
        return false;
    }
    if (wpk_search_time_over(search, now_ns)) {
        return true;
    }
    bool all_ended = search->ok_count + search->failed_count == search->ask_count;
    return all_ended && (search->ask_count >= search->candidates || search->exhausted);
}

void wpk_search_advance(struct wpk_coordinator *c, struct wpk_search *search)
{
    if (search->phase == WPK_PHASE_SEARCHING && search->candidates > 0 && !search->concluding &&
        is_over(search, c->event->now_ns)) {
        wpk_final_start(c, search);
    }
}

static void mark_wanted(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->search_count; i++) {
        c->searches[i]->wanted = false;
    }
    for (uint32_t j = 0; j < c->job_count; j++) {
        for (uint32_t i = 0; i < c->jobs[j]->op_count; i++) {
            if (c->jobs[j]->ops[i].search != NULL) {
                c->jobs[j]->ops[i].search->wanted = true;
            }
        }
    }
}

/* Some effect's answer will name it, or some worker's lease refers to it. */
static bool is_busy(const struct wpk_search *search)
{
    return search->id == 0 || search->asking || search->concluding || search->leased_count > 0;
}

void wpk_search_sweep(struct wpk_coordinator *c)
{
    uint32_t kept = 0;
    mark_wanted(c);
    for (uint32_t i = 0; i < c->search_count; i++) {
        struct wpk_search *search = c->searches[i];
        if (c->event != NULL && (search->wanted || is_busy(search))) {
            c->searches[kept++] = search;
            continue;
        }
        if (c->event != NULL) {
            wpk_effect_add(c, WPK_EFFECT_CLOSE_SEARCH)->handle = search->handle;
        }
        search_free(search);
    }
    c->search_count = kept;
}
