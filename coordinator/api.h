/* SPDX-License-Identifier: Apache-2.0 */
/* The REST resources of schema/openapi.yaml: a request becomes an answer, or an event that the
 * coordinator answers. Reads are made here, from the state and the store; nothing is changed. */
#ifndef WPK_COORDINATOR_API_H
#define WPK_COORDINATOR_API_H

#include "coordinator/coordinator.h"
#include "coordinator/http.h"
#include "coordinator/store.h"

struct wpk_api {
    const struct wpk_coordinator *coordinator;
    struct wpk_store *store;
    const char *data_dir;
    uint64_t now_ns;
    uint64_t random; /* for the id of a job */
};

struct wpk_api_answer {
    bool later; /* `event` has to be stepped; its effects answer the request */
    struct wpk_event event;
    int status;
    const char *content_type;
    char location[64]; /* "" for none */
    const char *allow; /* NULL: none */
    struct wpk_buf body;
};

/* For struct wpk_http_options. */
size_t wpk_api_body_max(const char *method, const char *path);

/*   owns    caller calls wpk_api_answer_fini; an event borrows from `request`, its job is taken by
 *           the step
 */
void wpk_api_serve(const struct wpk_api *api, const struct wpk_http_request *request,
                   struct wpk_api_answer *out);
void wpk_api_answer_fini(struct wpk_api_answer *answer);

/* A problem document (RFC 9457); `diag` may be NULL. */
void wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag);
/* A job, as answer to the request that changed it. */
void wpk_api_job(struct wpk_api_answer *answer, const struct wpk_api *api, int status,
                 const char *id);

#endif
