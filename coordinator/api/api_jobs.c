/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto.h"
#include "coordinator/api/api_change.h"
#include "coordinator/api/api_front.h"
#include "coordinator/state/submission.h"
#include "coordinator/store/document.h"
#include "coordinator/store/history_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACED_MAX 64 /* jobs of one id a day that are of no use; the last one stands */
#define WPK_IDEMPOTENCY_KEY_SIZE 256 /* bytes, with the NUL */
#define PAGE_WEIGHT_MAX 1024 /* operators in a page: the loop takes 10 ms to write so many down */
#define OP_SIZE 1024         /* bytes of one, about */
#define PAGE_JOBS_MAX 100    /* with 256 operators each, still less than a client takes at once */

/* Only an admin may change jobs of other owners; false after answering with a problem. */
static bool may_change(struct wpk_call *call, const char *owner)
{
    const struct wpk_identity *identity = &call->request->identity;
    if ((identity->roles & WPK_ROLE_ADMIN) != 0 || strcmp(identity->owner, owner) == 0) {
        return true;
    }
    return wpk_call_problem(call, 403, WPK_EACCES, "",
                            "the job belongs to somebody else; its owner or an admin may do this");
}

/* ---- submitting */

/* An id that is the same for the same texts, for a day. */
static void derive_id(const struct wpk_call *call, const char *kind, const char *part,
                      const char *key, char out[WPK_JOB_ID_SIZE])
{
    char hash[WPK_SHA256_HEX_SIZE];
    char day[24];
    snprintf(day, sizeof day, "%llu",
             (unsigned long long)(wpk_store_wall_ns(call->api->store) / WPK_IDEMPOTENCY_NS));
    const char *const texts[] = {kind, part, key, day};
    struct wpk_crypto_hash state;
    wpk_crypto_hash_init(&state);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        wpk_crypto_hash_add(&state, texts[i], strlen(texts[i]) + 1);
    }
    wpk_crypto_hash_finish_hex(&state, hash);
    snprintf(out, WPK_JOB_ID_SIZE, "j%.16s", hash);
}

/* Decode the request's body, a job file, on any thread but rather not the loop's: a large job takes
 * seconds. NULL after answering with a problem.
 *   owns  caller frees the job, or submits it */
static struct wpk_job_entry *read_job(struct wpk_call *call)
{
    const struct wpk_http_request *request = call->request;
    struct wpk_job_entry *job = NULL;
    struct wpk_diag diag = {0};
    wpk_err err = wpk_submission_decode(request->body, request->body_size, &job, &diag);
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, &diag);
        return NULL;
    }
    wpk_call_own_job(call, job);
    return job;
}

void wpk_call_own_job(const struct wpk_call *call, struct wpk_job_entry *job)
{
    const char *owner = call->request->identity.owner;
    if (owner[0] != '\0') {
        snprintf(job->owner, sizeof job->owner, "%s", owner);
    }
}

/* A job on its way to the loop. */
struct prepared {
    struct wpk_job_entry *job; /* owned; NULL: taken */
};

static void release_prepared(void *owner)
{
    struct prepared *prepared = owner;
    wpk_job_entry_free(prepared->job);
    free(prepared);
}

/* Before the loop has it. False after answering with a problem. */
static bool prepare(struct wpk_call *call)
{
    struct wpk_job_entry *job = NULL;
    bool large = call->request->body_size > WPK_API_LARGE_SIZE;
    if (!large || wpk_api_front_begin_large(call)) {
        job = read_job(call);
        wpk_api_front_end_large(call->api->front, large);
    }
    if (job == NULL) {
        return false;
    }
    struct prepared *prepared = WPK_DEMAND(malloc(sizeof *prepared));
    prepared->job = job;
    call->answer->release = release_prepared;
    call->answer->owner = prepared;
    return true;
}

/* The job of the request, which may have been read already; NULL after answering with a problem. */
static struct wpk_job_entry *take_prepared(struct wpk_call *call)
{
    struct prepared *prepared = call->request->prepared;
    struct wpk_job_entry *job = prepared != NULL ? prepared->job : NULL;
    if (prepared != NULL) {
        prepared->job = NULL;
    }
    return job != NULL ? job : read_job(call);
}

bool wpk_call_submit(struct wpk_call *call, const char *id, struct wpk_job_entry *job,
                     uint64_t request)
{
    snprintf(job->id, sizeof job->id, "%s", id);
    struct wpk_event event = {.kind = WPK_EVENT_SUBMIT, .request = request, .job = job};
    wpk_executor_step(call->api->executor, &event);
    bool accepted = wpk_coordinator_job(call->api->coordinator, id) != NULL;
    wpk_change_log(call, "job.submit", id, accepted ? WPK_OK : WPK_EBUSY, "");
    return accepted;
}

/* True if the last read of the store succeeded. After a failed read a job may exist: making it
 * again would fail, and with it all that is written in the same batch. False after answering with a
 * problem. */
static bool was_read(struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_store_take_status(call->api->store, &diag);
    return err == WPK_OK || wpk_api_problem(call->answer, 507, err, &diag);
}

/* True if the job `id` exists and no longer answers the owner of `wanted`: it was cancelled,
 * failed, or was paused by another owner. */
static bool is_of_no_use(struct wpk_call *call, const char *id, const struct wpk_job_entry *wanted,
                         bool *known)
{
    const struct wpk_job_entry *job = wpk_coordinator_job(call->api->coordinator, id);
    enum wpk_job_state state = job != NULL ? job->state : WPK_JOB_QUEUED;
    *known = job != NULL || wpk_history_job_state(call->api->store, id, &state);
    return *known && (state == WPK_JOB_CANCELLED || state == WPK_JOB_FAILED ||
                      (job != NULL && wpk_job_waits_for_another(job, wanted)));
}

bool wpk_call_submit_once(struct wpk_call *call, const char *kind, const char *key,
                          struct wpk_job_entry **job, char id[WPK_JOB_ID_SIZE])
{
    struct wpk_diag diag = {0};
    char number[16];
    bool known = true;
    bool again = true;
    wpk_err err = wpk_executor_degraded(call->api->executor, &diag);
    if (err != WPK_OK) {
        return wpk_api_problem(call->answer, 507, err, &diag);
    }
    const struct wpk_job_entry *live = wpk_job_find_same(call->api->coordinator, *job);
    if (live != NULL) {
        memcpy(id, live->id, WPK_JOB_ID_SIZE);
        return true;
    }
    for (int i = 0; again && i < REPLACED_MAX; i++) {
        snprintf(number, sizeof number, "%d", i);
        derive_id(call, kind, number, key, id);
        again = is_of_no_use(call, id, *job, &known);
    }
    if (!was_read(call)) {
        return false;
    }
    if (known) {
        return true;
    }
    struct wpk_job_entry *taken = *job;
    *job = NULL;
    if (wpk_call_submit(call, id, taken, 0)) {
        return true;
    }
    if (call->answer->status == 0) {
        wpk_call_problem(call, 429, WPK_EBUSY, "",
                         "no more jobs are taken now; submit again when some have ended");
        call->answer->retry_after_s = 60;
    }
    return false;
}

/* An idempotency key, which is written in the same batch as the job that it made. */
struct remembered {
    char owner[WPK_OWNER_SIZE];
    char key[WPK_IDEMPOTENCY_KEY_SIZE];
    struct wpk_idempotency entry;
};

static const char route[] = "POST /v1/jobs";

static void apply_remember(struct wpk_change *change, struct wpk_store *store)
{
    struct remembered *remembered = change->detail;
    wpk_history_put_idempotency(store, &remembered->entry);
}

static void remember(struct wpk_call *call, const struct wpk_idempotency *entry)
{
    struct remembered *remembered = WPK_DEMAND(calloc(1, sizeof *remembered));
    snprintf(remembered->owner, sizeof remembered->owner, "%s", entry->owner);
    snprintf(remembered->key, sizeof remembered->key, "%s", entry->key);
    remembered->entry = *entry;
    remembered->entry.owner = remembered->owner;
    remembered->entry.key = remembered->key;
    struct wpk_change *change = wpk_change_new(call, "job.key", entry->subject);
    change->detail = remembered;
    change->apply = apply_remember;
    wpk_executor_add_write(change->executor, &change->write);
}

/* Answered as the first time, with the job as it is now. */
static void replay(struct wpk_call *call, const struct wpk_idempotency *entry, const char *body)
{
    if (strcmp(entry->body_sha256, body) == 0) {
        wpk_api_job(call->answer, call->api, 201, entry->subject);
    } else {
        wpk_call_problem(call, 422, WPK_EMISMATCH, "Idempotency-Key",
                         "the key was used for another body; take a new one");
    }
}

static void post_keyed(struct wpk_call *call)
{
    const struct wpk_http_request *request = call->request;
    char body[WPK_SHA256_HEX_SIZE];
    char id[WPK_JOB_ID_SIZE];
    uint64_t number;
    struct wpk_buf document = {0};
    struct wpk_idempotency entry = {
        .owner = request->identity.owner, .key = request->idempotency_key, .route = route};
    wpk_crypto_sha256_hex(request->body, request->body_size, body);
    if (strlen(request->idempotency_key) >= WPK_IDEMPOTENCY_KEY_SIZE) {
        wpk_call_problem(call, 422, WPK_ERANGE, "Idempotency-Key", "at most 255 bytes");
        return;
    }
    bool known = wpk_history_find_idempotency(call->api->store, &entry);
    if (!was_read(call)) {
        return;
    }
    if (known) {
        replay(call, &entry, body);
        return;
    }
    derive_id(call, route, entry.owner, entry.key, id);
    if (wpk_coordinator_job(call->api->coordinator, id) != NULL) {
        wpk_call_problem(call, 409, WPK_EBUSY, "Idempotency-Key",
                         "the first request with this key is under way; ask again later");
        call->answer->retry_after_s = 1;
        return;
    }
    /* The clock may have gone past the key's day, and back. Making a stored job again would fail,
     * and with it all that is written in the same batch. */
    bool stored = wpk_history_job_document(call->api->store, id, &document, &number);
    wpk_buf_fini(&document);
    if (!was_read(call)) {
        return;
    }
    if (stored) {
        wpk_api_job(call->answer, call->api, 201, id);
        return;
    }
    struct wpk_job_entry *job = take_prepared(call);
    if (job != NULL && wpk_call_submit(call, id, job, request->id)) {
        memcpy(entry.body_sha256, body, sizeof body);
        snprintf(entry.subject, sizeof entry.subject, "%s", id);
        remember(call, &entry);
    }
}

void wpk_api_post_job(struct wpk_call *call)
{
    char id[WPK_JOB_ID_SIZE];
    if (call->api->front != NULL) {
        if (prepare(call)) {
            wpk_call_queue(call);
        }
        return;
    }
    call->answer->how = WPK_API_LATER;
    if (call->request->idempotency_key != NULL && call->request->idempotency_key[0] != '\0') {
        post_keyed(call);
        return;
    }
    snprintf(id, sizeof id, "j%016llx", (unsigned long long)call->api->random);
    struct wpk_job_entry *job = take_prepared(call);
    if (job != NULL) {
        wpk_call_submit(call, id, job, call->request->id);
    }
}

/* ---- one job */

void wpk_api_get_job(struct wpk_call *call)
{
    const struct wpk_api *api = call->api;
    struct wpk_buf document = {0};
    uint64_t number;
    bool known = wpk_history_job_document(api->store, call->name, &document, &number);
    bool live = known && document.size == 0;
    wpk_buf_fini(&document);
    if (!live || !wpk_call_queue(call)) {
        wpk_api_job(call->answer, api, 200, call->name);
    }
}

void wpk_api_change_job(struct wpk_call *call)
{
    static const char *const verbs[] = {"cancel", "pause", "resume"};
    static const char *const actions[] = {"job.cancel", "job.pause", "job.resume"};
    static const enum wpk_event_kind kinds[] = {WPK_EVENT_CANCEL, WPK_EVENT_PAUSE,
                                                WPK_EVENT_RESUME};
    int verb = wpk_list_find(verbs, 3, call->verb);
    const struct wpk_job_entry *job = wpk_coordinator_job(call->api->coordinator, call->name);
    if (job == NULL || job->finished_wall_ns != 0) {
        wpk_api_get_job(call); /* it has ended, or never was */
        if (call->answer->status == 404 || call->answer->status == 410) {
            wpk_change_log(call, actions[verb], call->name, WPK_ENOENT, "");
        }
        return;
    }
    bool may = may_change(call, job->owner);
    wpk_change_log(call, actions[verb], job->id, may ? WPK_OK : WPK_EACCES, "");
    if (may) {
        struct wpk_event event = {
            .kind = kinds[verb], .request = call->request->id, .job_id = job->id};
        call->answer->how = WPK_API_LATER;
        wpk_executor_step(call->api->executor, &event);
    }
}

/* ---- lists */

struct job_list {
    struct wpk_call *call;
    struct wpk_json_writer *w;
    size_t weight;
    uint64_t last; /* number of the last one written */
    bool cut;      /* others have no room */
};

static void list_job(void *user, uint64_t number, const char *id, const char *state WPK_UNUSED,
                     const char *document)
{
    struct job_list *list = user;
    const struct wpk_api *api = list->call->api;
    list->cut = list->cut || list->weight >= PAGE_WEIGHT_MAX;
    if (list->cut) {
        return;
    }
    list->last = number;
    if (document[0] != '\0') {
        list->weight += strlen(document) / OP_SIZE;
        wpk_json_put_raw(list->w, NULL, document);
        return;
    }
    const struct wpk_job_entry *job =
        wpk_call_queue(list->call) ? NULL : wpk_coordinator_job(api->coordinator, id);
    if (job != NULL) {
        list->weight += job->op_count;
        wpk_json_begin_object(list->w, NULL);
        wpk_document_job(list->w, api->coordinator, job, api->now_ns,
                         wpk_store_wall_ns(api->store));
        wpk_json_end(list->w);
    }
}

/* The parameter `state`, "" where it is not given; false after answering with a problem. */
static bool get_state(struct wpk_call *call, const char **out)
{
    char detail[128] = "state has to be one of:";
    const char *text = wpk_http_query(call->request, "state");
    *out = text != NULL ? text : "";
    if (text == NULL) {
        return true;
    }
    for (int i = 0; i < WPK_JOB_STATE_COUNT; i++) {
        const char *name = wpk_job_state_name((enum wpk_job_state)i);
        size_t used = strlen(detail);
        if (strcmp(*out, name) == 0) {
            return true;
        }
        snprintf(detail + used, sizeof detail - used, "%s %s", i > 0 ? "," : "", name);
    }
    return wpk_call_problem(call, 422, WPK_EINVAL, "state", detail);
}

void wpk_api_list_jobs(struct wpk_call *call)
{
    int page_size;
    uint64_t before;
    const char *state;
    if (!wpk_call_page_size(call, &page_size) || !get_state(call, &state) ||
        !wpk_call_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    if (page_size > PAGE_JOBS_MAX) {
        page_size = PAGE_JOBS_MAX;
    }
    struct job_list list = {.call = call, .w = wpk_json_writer_new_object()};
    wpk_json_begin_array(list.w, "jobs");
    uint64_t last =
        wpk_history_list_jobs(call->api->store, before, state, page_size, list_job, &list);
    wpk_json_end(list.w);
    wpk_call_put_token(list.w, list.cut ? list.last : last);
    wpk_call_json(call, list.w);
}
