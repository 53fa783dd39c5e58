/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api.h"

#include "common/crypto.h"
#include "coordinator/artifact.h"
#include "coordinator/document.h"
#include "coordinator/submission.h"
#include "schema/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SIZE_DEFAULT 100
#define PAGE_SIZE_MAX 1000
#define PAGE_JOBS_MAX 100 /* with 256 operators each, still less than a client takes at once */

struct call {
    const struct wpk_api *api;
    const struct wpk_http_request *request;
    struct wpk_api_answer *answer;
    char name[WPK_ID_MAX]; /* what the path names: a job, an artifact */
};

typedef void (*handler)(struct call *call);

/* ---- answers */

void wpk_api_answer_fini(struct wpk_api_answer *answer)
{
    wpk_buf_fini(&answer->body);
    memset(answer, 0, sizeof *answer);
}

void wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag)
{
    char type[64];
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    snprintf(type, sizeof type, "urn:woodpecker:%s", wpk_err_name(err));
    wpk_json_put_text(w, "type", type);
    wpk_json_put_text(w, "title", wpk_err_text(err));
    wpk_json_put_int(w, "status", status);
    wpk_json_put_text(w, "detail", diag != NULL ? diag->text : wpk_err_text(err));
    if (diag != NULL && diag->field[0] != '\0') {
        wpk_json_put_text(w, "field", diag->field);
    }
    if (diag != NULL && diag->line > 0) {
        wpk_json_put_int(w, "line", diag->line);
        wpk_json_put_int(w, "column", diag->column);
    }
    answer->status = status;
    answer->content_type = "application/problem+json";
    wpk_buf_reset(&answer->body);
    wpk_err printed = wpk_json_print(w, false, &answer->body);
    WPK_ASSERT(printed == WPK_OK || printed == WPK_ENOMEM);
    wpk_json_writer_free(w);
}

static void problem_text(struct call *call, int status, wpk_err err, const char *field,
                         const char *text)
{
    struct wpk_diag diag = {0};
    wpk_diag_set(&diag, "%s", text);
    snprintf(diag.field, sizeof diag.field, "%s", field);
    wpk_api_problem(call->answer, status, err, &diag);
}

static int status_of(wpk_err err)
{
    switch (err) {
    case WPK_EPARSE:
        return 400;
    case WPK_ENOENT:
    case WPK_EINVAL:
    case WPK_ERANGE:
    case WPK_EUNSUPPORTED:
        return 422;
    case WPK_ENOSPC:
        return 507;
    default:
        return 500;
    }
}

static void answer_json(struct call *call, struct wpk_json_writer *w)
{
    call->answer->status = 200;
    call->answer->content_type = "application/json";
    wpk_err err = wpk_json_print(w, false, &call->answer->body);
    wpk_json_writer_free(w);
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, status_of(err), err, NULL);
    }
}

void wpk_api_job(struct wpk_api_answer *answer, const struct wpk_api *api, int status,
                 const char *id)
{
    wpk_err err =
        wpk_document_job_whole(api->coordinator, api->store, id, api->now_ns, &answer->body);
    if (err != WPK_OK) {
        struct wpk_diag diag = {0};
        wpk_diag_set(&diag, "there is no job %s", id);
        wpk_api_problem(answer, err == WPK_ENOENT ? 404 : status_of(err), err,
                        err == WPK_ENOENT ? &diag : NULL);
        return;
    }
    answer->status = status;
    answer->content_type = "application/json";
    if (status == 201) {
        snprintf(answer->location, sizeof answer->location, "/v1/jobs/%s", id);
    }
}

/* ---- parameters */

/* A decimal parameter in [min, max]; false after answering with a problem. */
static bool get_number(struct call *call, const char *name, uint64_t fallback, uint64_t min,
                       uint64_t max, uint64_t *out)
{
    const char *text = wpk_http_query(call->request, name);
    *out = fallback;
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out >= min &&
        *out <= max) {
        return true;
    }
    char detail[128];
    snprintf(detail, sizeof detail, "%s has to be a number from %llu to %llu", name,
             (unsigned long long)min, (unsigned long long)max);
    problem_text(call, 422, WPK_ERANGE, name, detail);
    return false;
}

static bool get_page_size(struct call *call, int *out)
{
    uint64_t size;
    bool ok = get_number(call, "page_size", PAGE_SIZE_DEFAULT, 1, PAGE_SIZE_MAX, &size);
    *out = (int)size;
    return ok;
}

static void put_token(struct wpk_json_writer *w, uint64_t token)
{
    char text[24] = "";
    if (token != 0) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)token);
    }
    wpk_json_put_text(w, "next_page_token", text);
}

/* ---- jobs */

static void post_job(struct call *call)
{
    struct wpk_diag diag = {0};
    struct wpk_job_entry *job = NULL;
    wpk_err err = wpk_submission_decode(call->request->body, call->request->body_size, &job, &diag);
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, status_of(err), err, &diag);
        return;
    }
    snprintf(job->id, sizeof job->id, "j%016llx", (unsigned long long)call->api->random);
    call->answer->later = true;
    call->answer->event = (struct wpk_event){.kind = WPK_EVENT_SUBMIT,
                                             .request = call->request->id,
                                             .job = job,
                                             .source = call->request->body};
}

static void get_job(struct call *call)
{
    wpk_api_job(call->answer, call->api, 200, call->name);
}

static void cancel_job(struct call *call)
{
    const struct wpk_job_entry *job = wpk_coordinator_job(call->api->coordinator, call->name);
    if (job == NULL || job->finished_wall_ns != 0) {
        get_job(call); /* it has ended, or never was */
        return;
    }
    call->answer->later = true;
    call->answer->event = (struct wpk_event){
        .kind = WPK_EVENT_CANCEL, .request = call->request->id, .job_id = job->id};
}

struct job_list {
    const struct wpk_api *api;
    struct wpk_json_writer *w;
};

static void list_job(void *user, uint64_t number, const char *id, const char *state,
                     const char *document)
{
    struct job_list *list = user;
    const struct wpk_job_entry *job = wpk_coordinator_job(list->api->coordinator, id);
    (void)number;
    (void)state;
    if (document[0] != '\0') {
        wpk_json_put_raw(list->w, NULL, document);
    } else if (job != NULL) {
        wpk_json_begin_object(list->w, NULL);
        wpk_document_job(list->w, list->api->coordinator, job, list->api->now_ns,
                         wpk_store_wall_ns(list->api->store));
        wpk_json_end(list->w);
    }
}

/* The parameter `state`, "" where it is not given; false after answering with a problem. */
static bool get_state(struct call *call, const char **out)
{
    char detail[128] = "state has to be one of:";
    const char *text = wpk_http_query(call->request, "state");
    *out = text != NULL ? text : "";
    if (**out == '\0') {
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
    problem_text(call, 422, WPK_EINVAL, "state", detail);
    return false;
}

static void list_jobs(struct call *call)
{
    int page_size;
    uint64_t before;
    const char *state;
    if (!get_page_size(call, &page_size) || !get_state(call, &state) ||
        !get_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    if (page_size > PAGE_JOBS_MAX) {
        page_size = PAGE_JOBS_MAX;
    }
    struct job_list list = {.api = call->api, .w = wpk_json_writer_new_object()};
    wpk_json_begin_array(list.w, "jobs");
    uint64_t last =
        wpk_history_list_jobs(call->api->store, before, state, page_size, list_job, &list);
    wpk_json_end(list.w);
    put_token(list.w, last);
    answer_json(call, list.w);
}

/* ---- trials */

static bool find_op(struct call *call, const char *const *names, uint32_t count, int *out)
{
    const char *op = wpk_http_query(call->request, "op");
    *out = -1;
    for (uint32_t i = 0; op != NULL && i < count; i++) {
        if (strcmp(names[i], op) == 0) {
            *out = (int)i;
        }
    }
    if (op != NULL && *out < 0) {
        problem_text(call, 422, WPK_ENOENT, "op", "the job has no such operator");
        return false;
    }
    return true;
}

/* "position.index", as put_place writes it. */
static bool get_place(struct call *call, struct wpk_history_place *place)
{
    const char *text = wpk_http_query(call->request, "page_token");
    *place = (struct wpk_history_place){.index = -1};
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    unsigned position;
    long long index;
    char rest;
    if (sscanf(text, "%u.%lld%c", &position, &index, &rest) != 2 || index < 0) {
        problem_text(call, 422, WPK_EINVAL, "page_token", "not a token that a page gave out");
        return false;
    }
    *place = (struct wpk_history_place){.position = position, .index = index};
    return true;
}

static void list_trials(struct call *call)
{
    const char *names[WPK_DOCUMENT_OPS_MAX];
    uint32_t count = 0;
    uint64_t number = 0;
    int page_size;
    int op;
    struct wpk_history_place place;
    struct wpk_arena arena = {0};
    wpk_err err = wpk_document_op_names(call->api->coordinator, call->api->store, call->name,
                                        &arena, names, &count, &number);
    if (err != WPK_OK) {
        problem_text(call, err == WPK_ENOENT ? 404 : status_of(err), err, "", "no such job");
    } else if (get_page_size(call, &page_size) && find_op(call, names, count, &op) &&
               get_place(call, &place)) {
        char token[48] = "";
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_json_begin_array(w, "trials");
        if (wpk_history_list_trials(call->api->store, number, op, names, count, page_size, &place,
                                    w)) {
            snprintf(token, sizeof token, "%u.%lld", place.position, (long long)place.index);
        }
        wpk_json_end(w);
        wpk_json_put_text(w, "next_page_token", token);
        answer_json(call, w);
    }
    wpk_arena_fini(&arena);
}

/* ---- workers */

static void list_workers(struct call *call)
{
    const struct wpk_coordinator *coordinator = call->api->coordinator;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "workers");
    for (uint32_t i = 0; i < wpk_coordinator_worker_count(coordinator); i++) {
        wpk_document_worker(w, wpk_coordinator_worker(coordinator, i), call->api->now_ns);
    }
    wpk_json_end(w);
    answer_json(call, w);
}

/* ---- kernels */

static void list_kernel(void *user, uint64_t id, const char *document)
{
    wpk_document_kernel_served(user, NULL, id, "", true, document);
}

static void list_kernels(struct call *call)
{
    int page_size;
    uint64_t before;
    if (!get_page_size(call, &page_size) ||
        !get_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    const char *fingerprint = wpk_http_query(call->request, "fingerprint");
    const char *device = wpk_http_query(call->request, "device");
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "kernels");
    uint64_t last =
        wpk_history_list_kernels(call->api->store, before, fingerprint != NULL ? fingerprint : "",
                                 device != NULL ? device : "", page_size, list_kernel, w);
    wpk_json_end(w);
    put_token(w, last);
    answer_json(call, w);
}

struct lookup {
    char fingerprint[WPK_ID_MAX];
    char layouts[16];
    int threads;
    struct wpk_buf device;
};

/* Look an operator up as a job of one operator would name it. */
static wpk_err expand_lookup(struct wpk_json_reader *r, struct lookup *out, struct wpk_diag *diag)
{
    static const char *const members[] = {"op", "tensors", "constants"};
    struct wpk_buf text = {0};
    wpk_buf_append_text(&text, "{\"name\":\"lookup\",\"ops\":[{\"name\":\"op\"");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (wpk_json_has(r, members[i])) {
            wpk_buf_printf(&text, ",\"%s\":", members[i]);
            wpk_json_get_raw(r, members[i], &text);
        }
    }
    wpk_buf_append_text(&text, "}]}");
    struct wpk_job_entry *job = NULL;
    wpk_err err = wpk_buf_status(&text);
    if (err == WPK_OK) {
        err = wpk_submission_decode(text.data, text.size, &job, diag);
    }
    if (err == WPK_OK) {
        memcpy(out->fingerprint, job->ops[0].fingerprint, sizeof out->fingerprint);
    } else if (strncmp(diag->field, "ops[0].", 7) == 0) {
        /* The place in a text of our own making means nothing to the caller; the field does. */
        memmove(diag->field, diag->field + 7, sizeof diag->field - 7);
        diag->line = 0;
        diag->column = 0;
    }
    wpk_job_entry_free(job);
    wpk_buf_fini(&text);
    return err;
}

static wpk_err decode_lookup(struct wpk_json_reader *r, struct lookup *out, struct wpk_diag *diag)
{
    static const char *const names[] = {"op",      "tensors", "constants", "fingerprint",
                                        "layouts", "threads", "device",    NULL};
    static const char *const layouts[] = {"fixed", "any"};
    wpk_json_allow(r, names);
    size_t choice = wpk_json_has(r, "layouts") ? wpk_json_get_choice(r, "layouts", layouts, 2) : 0;
    snprintf(out->layouts, sizeof out->layouts, "%s", layouts[choice]);
    out->threads = wpk_json_has(r, "threads")
                       ? (int)wpk_json_get_int(r, "threads", 1, WPK_JOB_THREADS_MAX)
                       : 1;
    if (wpk_json_has(r, "device")) {
        wpk_buf_append_text(&out->device, wpk_json_get_text(r, "device", 512));
    }
    if (wpk_json_has(r, "op") == wpk_json_has(r, "fingerprint")) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "give either op or fingerprint");
    }
    if (wpk_json_has(r, "fingerprint")) {
        wpk_json_get_copy(r, "fingerprint", out->fingerprint, sizeof out->fingerprint);
    }
    wpk_err err = wpk_json_status(r);
    return err == WPK_OK && wpk_json_has(r, "op") ? expand_lookup(r, out, diag) : err;
}

static void answer_lookup(struct call *call, const struct lookup *lookup)
{
    struct wpk_buf document = {0};
    uint64_t id = 0;
    bool vendor = false;
    bool found =
        wpk_history_lookup(call->api->store, lookup->fingerprint, lookup->layouts, lookup->threads,
                           wpk_buf_text(&lookup->device), &id, &vendor, &document);
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "match", !found ? "none" : vendor ? "vendor" : "exact");
    if (found) {
        wpk_document_kernel_served(w, "kernel", id, "", true, wpk_buf_text(&document));
    } else {
        wpk_json_put_null(w, "kernel");
    }
    wpk_buf_fini(&document);
    answer_json(call, w);
}

static void lookup_kernel(struct call *call)
{
    struct wpk_diag diag = {0};
    struct lookup lookup = {0};
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(call->request->body, call->request->body_size, 0, &r, &diag);
    if (err == WPK_OK) {
        err = decode_lookup(r, &lookup, &diag);
    }
    if (err == WPK_OK && lookup.device.size == 0 &&
        wpk_history_devices(call->api->store, &lookup.device) > 1) {
        snprintf(diag.field, sizeof diag.field, "device");
        wpk_diag_set(&diag, "several devices are known: say which");
        err = WPK_EINVAL;
    }
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, status_of(err), err, &diag);
    } else {
        answer_lookup(call, &lookup);
    }
    wpk_json_close(r);
    wpk_buf_fini(&lookup.device);
}

static void get_artifact(struct call *call)
{
    struct wpk_diag diag = {0};
    if (!wpk_crypto_hex_valid(call->name, WPK_SHA256_SIZE)) {
        problem_text(call, 404, WPK_ENOENT, "sha256", "not a SHA-256 in lower-case hexadecimal");
        return;
    }
    wpk_err err = wpk_artifact_get(call->api->data_dir, call->name, &call->answer->body, &diag);
    if (err != WPK_OK) {
        /* Other failures name paths of this machine. */
        wpk_api_problem(call->answer, err == WPK_ENOENT ? 404 : 500, err,
                        err == WPK_ECORRUPT ? &diag : NULL);
        return;
    }
    call->answer->status = 200;
    call->answer->content_type = "application/octet-stream";
}

static void get_health(struct call *call)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "status", "ok");
    wpk_json_put_text(w, "version", WPK_VERSION);
    answer_json(call, w);
}

/* ---- routes */

/* `*` stands for one segment without ':' and '/'. */
static const struct route {
    const char *method;
    const char *path;
    handler serve;
    size_t body_max;
} routes[] = {
    {"GET", "/healthz", get_health, 0},
    {"POST", "/v1/jobs", post_job, WPK_JOB_SIZE_MAX},
    {"GET", "/v1/jobs", list_jobs, 0},
    {"GET", "/v1/jobs/*", get_job, 0},
    {"POST", "/v1/jobs/*:cancel", cancel_job, 1024},
    {"GET", "/v1/jobs/*/trials", list_trials, 0},
    {"GET", "/v1/workers", list_workers, 0},
    {"GET", "/v1/kernels", list_kernels, 0},
    {"POST", "/v1/kernels:lookup", lookup_kernel, WPK_JOB_SIZE_MAX},
    {"GET", "/v1/artifacts/*", get_artifact, 0},
};

#define ROUTE_COUNT (sizeof routes / sizeof routes[0])

static bool match(const char *pattern, const char *path, char name[WPK_ID_MAX])
{
    const char *star = strchr(pattern, '*');
    if (star == NULL) {
        return strcmp(pattern, path) == 0;
    }
    size_t before = (size_t)(star - pattern);
    if (strncmp(pattern, path, before) != 0) {
        return false;
    }
    size_t size = strcspn(path + before, ":/");
    if (size == 0 || size >= WPK_ID_MAX || strcmp(star + 1, path + before + size) != 0) {
        return false;
    }
    memcpy(name, path + before, size);
    name[size] = '\0';
    return true;
}

size_t wpk_api_body_max(const char *method, const char *path)
{
    char name[WPK_ID_MAX];
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (strcmp(routes[i].method, method) == 0 && match(routes[i].path, path, name)) {
            return routes[i].body_max;
        }
    }
    return 1024; /* it will be told that there is no such thing */
}

static bool is_json(const char *content_type)
{
    return strncmp(content_type, "application/json", 16) == 0 &&
           (content_type[16] == '\0' || content_type[16] == ';');
}

void wpk_api_serve(const struct wpk_api *api, const struct wpk_http_request *request,
                   struct wpk_api_answer *out)
{
    memset(out, 0, sizeof *out);
    struct call call = {.api = api, .request = request, .answer = out};
    bool head = strcmp(request->method, "HEAD") == 0;
    const char *method = head ? "GET" : request->method;
    const char *allowed = NULL;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!match(routes[i].path, request->path, call.name)) {
            continue;
        }
        if (strcmp(routes[i].method, method) != 0) {
            allowed = allowed == NULL ? routes[i].method : "GET, POST";
            continue;
        }
        if (request->body_size > 0 && !is_json(request->content_type)) {
            problem_text(&call, 415, WPK_EUNSUPPORTED, "", "the body has to be application/json");
            return;
        }
        routes[i].serve(&call);
        return;
    }
    out->allow = allowed;
    problem_text(&call, allowed != NULL ? 405 : 404, WPK_ENOENT, "",
                 allowed != NULL ? "not with this method" : "there is no such resource");
}
