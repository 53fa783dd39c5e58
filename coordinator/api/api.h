/* SPDX-License-Identifier: Apache-2.0 */
/* The REST resources of schema/openapi.yaml: a request becomes an answer, or an event or an order
 * that leads to one. Two threads ask:
 *
 *     the server's (api_front.c)   lookups, kernels, artifacts, whatever is in the store
 *     the loop's (performer.c)     what lives in the coordinator's state, and all that changes it
 *
 * The routes in api.c say which; a handler may find on the way that only the loop knows. */
#ifndef WPK_COORDINATOR_API_API_H
#define WPK_COORDINATOR_API_API_H

#include "coordinator/http/http.h"
#include "coordinator/index/index.h"
#include "coordinator/state/coordinator.h"

struct wpk_api_front;
struct wpk_performer;
struct wpk_sign;

struct wpk_api {
    /* NULL on the server's threads, both of them. */
    const struct wpk_coordinator *coordinator;
    struct wpk_performer *performer;
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

enum wpk_api_how {
    WPK_API_NOW,   /* it is here */
    WPK_API_LATER, /* effects of a step, or an order, give it */
    WPK_API_QUEUE, /* on the server's threads: only the loop can tell */
};

struct wpk_api_answer {
    enum wpk_api_how how;
    int status;
    const char *content_type;
    char location[64]; /* "" for none */
    char allow[40];    /* "" for none */
    char etag[72];     /* with its quotes; "" for none */
    uint32_t retry_after_s;
    struct wpk_buf body;
    /* Instead of `body`, where it is borrowed: until it is given back to `owner`. */
    struct wpk_span borrowed;
    void (*release)(void *owner);
    void *owner;
};

/* For struct wpk_http_options. */
size_t wpk_api_body_max(const char *method, const char *path);

/*   owns    caller calls wpk_api_answer_fini */
void wpk_api_serve(const struct wpk_api *api, const struct wpk_http_request *request,
                   struct wpk_api_answer *out);
void wpk_api_answer_fini(struct wpk_api_answer *answer);
/* As the server wants it: borrows from `answer`. */
void wpk_api_response(const struct wpk_api_answer *answer, struct wpk_http_response *out);

/* A problem document (RFC 9457); `diag` may be NULL. */
void wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag);
/* What was ordered of a worker, as answer to the request that did. */
void wpk_api_worker_order(struct wpk_api_answer *answer, int status, const char *name,
                          enum wpk_worker_order order, const char *reason);
/* A job, as answer to the request that changed it. */
void wpk_api_job(struct wpk_api_answer *answer, const struct wpk_api *api, int status,
                 const char *id);

#endif
