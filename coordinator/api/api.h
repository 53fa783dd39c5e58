/* SPDX-License-Identifier: Apache-2.0 */
/* The REST resources of schema/openapi.yaml. A request becomes an answer, or an event or a store
 * write that leads to an answer. Two kinds of threads call this, both in api_request.c:
 *
 *     the server's   for lookups, kernels, artifacts, all that is in the store
 *     the loop's     for the coordinator's state, and for all changes
 *
 * The routes in api.c name the thread; a handler may also leave a request to the loop. */
#ifndef WPK_COORDINATOR_API_API_H
#define WPK_COORDINATOR_API_API_H

#include "coordinator/http/http.h"
#include "coordinator/index/index.h"
#include "coordinator/state/coordinator.h"

struct wpk_api_front;
struct wpk_executor;
struct wpk_sign;

struct wpk_api {
    /* The next two are NULL on the server's threads. */
    const struct wpk_coordinator *coordinator;
    struct wpk_executor *executor;
    struct wpk_api_front *front; /* NULL on the loop's thread */
    struct wpk_store *store;     /* for reads on this thread; NULL: the front has readers */
    struct wpk_index *index;     /* NULL: no lookups (simulator) */
    struct wpk_auth *auth;       /* NULL: tokens are stored but not checked */
    const char *public_key;      /* of the signing key; NULL: none, or on the loop's thread */
    const struct wpk_sign *sign; /* NULL: none, or on the loop's thread */
    const char *data_dir;
    uint64_t now_ns;
    uint64_t random; /* for ids */
};

/* wpkd is not ready when its store has not answered for this long: longer than a transaction takes
 * on a disk that is only slow. */
#define WPK_API_STALLED_S 5

/* `entry` and `body_max` of struct wpk_http_options. */
enum wpk_http_entry wpk_api_entry(const char *method, const char *path);
size_t wpk_api_body_max(const char *method, const char *path);

/* Serve a request.   owns  caller calls wpk_api_answer_fini */
void wpk_api_serve(const struct wpk_api *api, const struct wpk_http_request *request,
                   struct wpk_api_answer *out);

/* For struct wpk_executor_options: answer the request that an effect of a step answers. */
void wpk_api_answer_effect(struct wpk_executor *executor, const struct wpk_effect *effect,
                           struct wpk_api_answer *answer);
/* On the loop's thread: answer a request, or begin what will answer it. */
void wpk_api_request(struct wpk_executor *executor, const struct wpk_http_request *request,
                     uint64_t random);

#endif
