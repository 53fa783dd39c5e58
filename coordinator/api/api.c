/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api.h"

#include "common/log.h"
#include "common/suggest.h"
#include "coordinator/api/api_call.h"
#include "coordinator/api/api_front.h"
#include "coordinator/effects/executor.h"
#include "schema/job.h"

#include <stdio.h>
#include <string.h>

#define SMALL_BODY ((size_t)1024)
#define CHOICE_BODY ((size_t)32 << 10) /* names of 64 tensors */

/* Where a route begins. */
enum where {
    INDEX, /* on the server's threads; its handler queues what only the loop knows */
    STORE, /* likewise, and it reads from the store */
    LOOP,
    BOTH, /* on the server's threads, for what takes long; then its handler leaves it to the loop */
};

#define PAGE "page_size page_token "
#define KERNEL_FILTER                                                                              \
    "fingerprint family device layouts threads environment provider accuracy conditions "

/* `*` stands for one segment without ':' and '/'. Role 0: whoever was let in. They are searched in
 * their order: lookups are most of what is asked. */
static const struct route {
    const char *method;
    const char *path;
    unsigned role;
    enum where where;
    size_t body_max;
    void (*serve)(struct wpk_call *call);
    const char *query; /* its parameters, a space after each */
} routes[] = {
    {"POST", "/v1/kernels:lookup", WPK_ROLE_READ, INDEX, WPK_JOB_SIZE_MAX, wpk_api_lookup_kernel,
     "tune "},
    {"GET", "/v1/kernels", WPK_ROLE_READ, INDEX, 0, wpk_api_list_kernels, PAGE KERNEL_FILTER},
    {"GET", "/v1/misses", WPK_ROLE_READ, STORE, 0, wpk_api_list_misses, PAGE},

    {"GET", "/healthz", 0, INDEX, 0, wpk_api_get_health, ""},
    {"GET", "/readyz", 0, INDEX, 0, wpk_api_get_ready, ""},
    {"GET", "/metrics", WPK_ROLE_READ, INDEX, 0, wpk_api_get_metrics, ""},
    {"GET", "/v1/signing-key", WPK_ROLE_READ, INDEX, 0, wpk_api_get_signing_key, ""},

    {"POST", "/v1/jobs", WPK_ROLE_SUBMIT, BOTH, WPK_JOB_SIZE_MAX, wpk_api_post_job, ""},
    {"GET", "/v1/jobs", WPK_ROLE_READ, STORE, 0, wpk_api_list_jobs, PAGE "state "},
    {"GET", "/v1/jobs/*", WPK_ROLE_READ, STORE, 0, wpk_api_get_job, ""},
    {"POST", "/v1/jobs/*:cancel", WPK_ROLE_SUBMIT, LOOP, SMALL_BODY, wpk_api_change_job, ""},
    {"POST", "/v1/jobs/*:pause", WPK_ROLE_SUBMIT, LOOP, SMALL_BODY, wpk_api_change_job, ""},
    {"POST", "/v1/jobs/*:resume", WPK_ROLE_SUBMIT, LOOP, SMALL_BODY, wpk_api_change_job, ""},
    {"GET", "/v1/jobs/*/trials", WPK_ROLE_READ, STORE, 0, wpk_api_list_trials, PAGE "op outcome "},

    {"GET", "/v1/workers", WPK_ROLE_READ, LOOP, 0, wpk_api_list_workers, PAGE},
    {"POST", "/v1/workers:drain", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_set_worker, ""},
    {"POST", "/v1/workers:quarantine", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_set_worker, ""},
    {"POST", "/v1/workers:resume", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_set_worker, ""},
    {"GET", "/v1/demand", WPK_ROLE_READ, LOOP, 0, wpk_api_get_demand, "device "},
    {"GET", "/v1/devices", WPK_ROLE_READ, INDEX, 0, wpk_api_list_devices, ""},

    {"GET", "/v1/kernels/*", WPK_ROLE_READ, STORE, 0, wpk_api_get_kernel, ""},
    {"GET", "/v1/kernels/*/manifest", WPK_ROLE_READ, STORE, 0, wpk_api_get_manifest, ""},
    {"GET", "/v1/kernels/*/history", WPK_ROLE_READ, STORE, 0, wpk_api_list_kernel_history, PAGE},
    {"POST", "/v1/kernels/*:choice", WPK_ROLE_READ, STORE, CHOICE_BODY, wpk_api_choose_kernel, ""},
    {"POST", "/v1/kernels/*:pin", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_change_kernel, ""},
    {"POST", "/v1/kernels/*:unpin", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_change_kernel, ""},
    {"POST", "/v1/kernels/*:revoke", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_change_kernel, ""},
    {"POST", "/v1/kernels/*:rollback", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_change_kernel, ""},
    {"GET", "/v1/artifacts/*", WPK_ROLE_READ, STORE, 0, wpk_api_get_artifact, ""},

    {"POST", "/v1/tokens", WPK_ROLE_ADMIN, LOOP, SMALL_BODY, wpk_api_post_token, ""},
    {"GET", "/v1/tokens", WPK_ROLE_ADMIN, STORE, 0, wpk_api_list_tokens, PAGE},
    {"DELETE", "/v1/tokens/*", WPK_ROLE_ADMIN, LOOP, 0, wpk_api_delete_token, ""},
    /* Pages: not in openapi.yaml, because they are no interface for programs. */
    {"GET", "/", 0, INDEX, 0, wpk_api_page_home, ""},
    {"GET", "/ui", 0, INDEX, 0, wpk_api_page_home, ""},
    {"GET", "/ui/", WPK_ROLE_READ, STORE, 0, wpk_api_page_jobs, "page_token state "},
    {"GET", "/ui/job", WPK_ROLE_READ, STORE, 0, wpk_api_page_job,
     "id op page_token axis by outcome "},
    {"GET", "/ui/report", WPK_ROLE_READ, STORE, 0, wpk_api_page_report, "id op "},
    {"GET", "/ui/compare", WPK_ROLE_READ, STORE, 0, wpk_api_page_compare, "a b "},
    {"GET", "/ui/trials", WPK_ROLE_READ, STORE, 0, wpk_api_page_trials, "id op a b "},
    {"GET", "/ui/kernels", WPK_ROLE_READ, INDEX, 0, wpk_api_page_kernels, "page_token "},
    {"GET", "/ui/kernel", WPK_ROLE_READ, STORE, 0, wpk_api_page_kernel, "id "},
    {"GET", "/ui/misses", WPK_ROLE_READ, STORE, 0, wpk_api_page_misses, "page_token "},
    {"GET", "/ui/fleet", WPK_ROLE_READ, INDEX, 0, wpk_api_page_fleet, ""},
    {"GET", "/ui/style.css", 0, INDEX, 0, wpk_api_page_style, ""},
    {"GET", "/ui/script.js", 0, INDEX, 0, wpk_api_page_script, ""},
    {"GET", "/ui/sign-in", 0, INDEX, 0, wpk_api_page_sign_in, "signed "},
    {"POST", "/ui/sign-in", 0, INDEX, SMALL_BODY, wpk_api_sign_in, ""},

    {"GET", "/v1/audit", WPK_ROLE_ADMIN, STORE, 0, wpk_api_list_audit, PAGE "actor action "},
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

/* NULL when there is none; then `allow`, if it is not NULL, names the methods that the path has. */
static const struct route *find_route(const char *method, const char *path, char name[WPK_ID_MAX],
                                      char *allow, size_t allow_size)
{
    size_t used = 0;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!match(routes[i].path, path, name)) {
            continue;
        }
        if (strcmp(routes[i].method, method) == 0) {
            return &routes[i];
        }
        if (allow != NULL) {
            int size = snprintf(allow + used, allow_size - used, "%s%s", used > 0 ? ", " : "",
                                routes[i].method);
            used += (size_t)size;
            WPK_ASSERT(used < allow_size);
        }
    }
    return NULL;
}

size_t wpk_api_body_max(const char *method, const char *path)
{
    char name[WPK_ID_MAX];
    const struct route *route = find_route(method, path, name, NULL, 0);
    return route != NULL ? route->body_max : SMALL_BODY; /* it will be told what is wrong */
}

static bool is_type(const char *content_type, const char *type)
{
    size_t size = strlen(type);
    return strncmp(content_type, type, size) == 0 &&
           (content_type[size] == '\0' || content_type[size] == ';');
}

/* A misspelled filter would be a list of everything. False after answering with a problem. */
static bool knows_parameter(struct wpk_call *call, const struct route *route, const char *name)
{
    char detail[WPK_DIAG_TEXT_MAX];
    char known[WPK_SUGGEST_SIZE];
    struct wpk_suggest suggest = {.word = name};
    for (const char *at = route->query; *at != '\0'; at += strcspn(at, " ") + 1) {
        snprintf(known, sizeof known, "%.*s", (int)strcspn(at, " "), at);
        if (strcmp(known, name) == 0) {
            return true;
        }
        wpk_suggest_offer(&suggest, known);
    }
    snprintf(detail, sizeof detail, "%s takes no parameter '%.100s'%s", route->path, name,
             wpk_suggest_text(&suggest));
    return wpk_call_problem(call, 400, WPK_EINVAL, name, detail);
}

/* Role, query and body; false after answering with a problem. */
static bool admit(struct wpk_call *call, const struct route *route)
{
    if (route->role != 0 && !wpk_call_admit(call, (enum wpk_auth_role)route->role)) {
        return false;
    }
    for (uint32_t i = 0; i < call->request->query_count; i++) {
        if (!knows_parameter(call, route, call->request->query[i].name)) {
            return false;
        }
    }
    bool is_form = route->serve == wpk_api_sign_in;
    const char *type = is_form ? "application/x-www-form-urlencoded" : "application/json";
    if (call->request->body_size > 0 && !is_type(call->request->content_type, type)) {
        return wpk_call_problem(call, 415, WPK_EUNSUPPORTED, "",
                                is_form ? "the body has to be a form"
                                        : "the body has to be application/json");
    }
    return true;
}

/* With a connection to the store for as long as it takes. */
static void serve_from_store(struct wpk_call *call, const struct route *route)
{
    struct wpk_diag diag = {0};
    struct wpk_api api = *call->api;
    api.store = wpk_api_front_take(api.front, &diag);
    if (api.store == NULL) {
        wpk_call_problem(call, 503, WPK_EBUSY, "", "the store cannot be read now; ask again later");
        return;
    }
    call->api = &api;
    route->serve(call);
    wpk_err err = wpk_store_take_status(api.store, &diag);
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_WARN, "read_failed", err, &diag);
        wpk_call_problem(call, 503, err, "", "the store cannot be read now; ask again later");
    }
    wpk_api_front_give(api.front, api.store);
}

/* Refuse a change with 507 if the store cannot record it; false after that. */
static bool can_change(struct wpk_call *call, const struct route *route)
{
    struct wpk_diag diag = {0};
    wpk_err err = strcmp(route->method, "GET") != 0
                      ? wpk_executor_degraded(call->api->executor, &diag)
                      : WPK_OK;
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, 507, err, &diag);
    }
    return err == WPK_OK;
}

static void serve(struct wpk_call *call, const struct route *route)
{
    bool on_loop = call->api->front == NULL;
    if (route->where == LOOP && wpk_call_queue(call)) {
        return;
    }
    if (on_loop && (route->where == LOOP || route->where == BOTH) && !can_change(call, route)) {
        return;
    }
    if (route->where == STORE && call->api->front != NULL) {
        serve_from_store(call, route);
    } else {
        route->serve(call);
    }
}

void wpk_api_serve(const struct wpk_api *api, const struct wpk_http_request *request,
                   struct wpk_api_answer *out)
{
    memset(out, 0, sizeof *out);
    struct wpk_call call = {.api = api, .request = request, .answer = out};
    const char *method = strcmp(request->method, "HEAD") == 0 ? "GET" : request->method;
    const struct route *route =
        find_route(method, request->path, call.name, out->allow, sizeof out->allow);
    if (route == NULL && out->allow[0] != '\0') {
        wpk_call_problem(&call, 405, WPK_ENOENT, "",
                         "not with this method; openapi.yaml lists those that there are");
    } else if (route == NULL) {
        wpk_call_problem(&call, 404, WPK_ENOENT, "",
                         "there is no such resource; openapi.yaml lists them");
    } else {
        out->allow[0] = '\0';
        const char *colon = strchr(route->path, ':');
        call.verb = colon != NULL ? colon + 1 : "";
        if (admit(&call, route)) {
            serve(&call, route);
        }
    }
}
