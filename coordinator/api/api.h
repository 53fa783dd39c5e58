/* SPDX-License-Identifier: Apache-2.0 */
/* The REST resources of schema/openapi.yaml: a request becomes an answer, or an event or a store
 * write that leads to one. Two threads ask, both in api_request.c:
 *
 *     the server's   lookups, kernels, artifacts, whatever is in the store
 *     the loop's     what lives in the coordinator's state, and all that changes it
 *
 * The routes in api.c say which; a handler may find on the way that only the loop knows. */
#ifndef WPK_COORDINATOR_API_API_H
#define WPK_COORDINATOR_API_API_H

#include "coordinator/http/answer.h"
#include "coordinator/index/index.h"
#include "coordinator/state/coordinator.h"

struct wpk_api_front;
struct wpk_executor;
struct wpk_sign;

struct wpk_api {
    /* NULL on the server's threads, both of them. */
    const struct wpk_coordinator *coordinator;
    struct wpk_executor *executor;
    struct wpk_api_front *front; /* NULL on the loop's thread */
    struct wpk_store *store;     /* to read from, on this thread; NULL where the front has them */
    struct wpk_index *index; /* NULL: nothing is looked up (simulations) */
    struct wpk_auth *auth;   /* NULL: tokens are stored, and that is all */
    const char *public_key;  /* of what signs manifests; NULL: nothing does */
    const struct wpk_sign *sign; /* NULL: nothing is signed */
    const char *data_dir;
    uint64_t now_ns;
    uint64_t random; /* for ids */
};

/* With a store that has not answered for so long, wpkd is not ready: the longest that a transaction
 * on a disk that is merely slow may take. */
#define WPK_API_STALLED_S 5

/* For struct wpk_http_options. */
size_t wpk_api_body_max(const char *method, const char *path);

/*   owns    caller calls wpk_api_answer_fini */
void wpk_api_serve(const struct wpk_api *api, const struct wpk_http_request *request,
                   struct wpk_api_answer *out);

/* For struct wpk_executor_options: answer the request that an effect of a step answers. */
void wpk_api_answer_effect(struct wpk_executor *executor, const struct wpk_effect *effect,
                           struct wpk_api_answer *answer);
/* On the loop's thread: answer a request, or step what it asks for. */
void wpk_api_request(struct wpk_executor *executor, const struct wpk_http_request *request,
                     uint64_t random);

#endif
