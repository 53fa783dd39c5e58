/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api.h"

#include "coordinator/api_call.h"
#include "schema/job.h"

#include <string.h>

/* ---- routes */

/* `*` stands for one segment without ':' and '/'. */
static const struct route {
    const char *method;
    const char *path;
    void (*serve)(struct wpk_call *call);
    size_t body_max;
} routes[] = {
    {"GET", "/healthz", wpk_api_get_health, 0},
    {"POST", "/v1/jobs", wpk_api_post_job, WPK_JOB_SIZE_MAX},
    {"GET", "/v1/jobs", wpk_api_list_jobs, 0},
    {"GET", "/v1/jobs/*", wpk_api_get_job, 0},
    {"POST", "/v1/jobs/*:cancel", wpk_api_cancel_job, 1024},
    {"GET", "/v1/jobs/*/trials", wpk_api_list_trials, 0},
    {"GET", "/v1/workers", wpk_api_list_workers, 0},
    {"GET", "/v1/kernels", wpk_api_list_kernels, 0},
    {"POST", "/v1/kernels:lookup", wpk_api_lookup_kernel, WPK_JOB_SIZE_MAX},
    {"GET", "/v1/artifacts/*", wpk_api_get_artifact, 0},
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
    struct wpk_call call = {.api = api, .request = request, .answer = out};
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
            wpk_call_problem(&call, 415, WPK_EUNSUPPORTED, "",
                             "the body has to be application/json");
            return;
        }
        routes[i].serve(&call);
        return;
    }
    out->allow = allowed;
    wpk_call_problem(&call, allowed != NULL ? 405 : 404, WPK_ENOENT, "",
                     allowed != NULL ? "not with this method" : "there is no such resource");
}
