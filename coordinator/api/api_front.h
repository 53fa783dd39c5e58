/* SPDX-License-Identifier: Apache-2.0 */
/* The API on the HTTP server's threads: what needs neither the coordinator's state nor a change is
 * answered there, from the index and from connections to the store that only read. */
#ifndef WPK_COORDINATOR_API_API_FRONT_H
#define WPK_COORDINATOR_API_API_FRONT_H

#include "coordinator/api/api.h"

#define WPK_API_READERS_MAX 16 /* connections to the store */

struct wpk_api_front;

struct wpk_api_front_options {
    const char *data_dir; /* borrowed, as all of this */
    struct wpk_index *index;
    const struct wpk_clock *clock;
    const char *public_key; /* of what signs manifests; NULL: nothing does */
    const struct wpk_sign *sign;
};

/*   owns    caller frees, after the server and before the index
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_api_front_new(const struct wpk_api_front_options *options,
                                         struct wpk_api_front **out);
void wpk_api_front_free(struct wpk_api_front *front);

const struct wpk_api_front_options *wpk_api_front_options(const struct wpk_api_front *front);

struct wpk_call;

/* Somebody was refused: on any thread. Of each actor, token, peer and reason a line is written at
 * once and then one a minute, with how many there were; of WPK_API_REFUSALS_MAX at a time, others
 * are only counted. `untold` more were like it. */
#define WPK_API_REFUSALS_MAX 32
#define WPK_API_REFUSAL_NS (60 * (uint64_t)WPK_NS_PER_S)
void wpk_api_front_refuse(struct wpk_api_front *front, const struct wpk_identity *identity,
                          const char *reason, uint64_t untold);
/* Large requests, and batches of lookups that take as long, are understood on so many threads at a
 * time, so that most are for others: false after answering that so many are. */
#define WPK_API_LARGE_MAX 2
#define WPK_API_LARGE_SIZE ((size_t)64 << 10) /* bytes; others take some tenths of a second */
WPK_MUST_CHECK bool wpk_api_front_begin_large(struct wpk_call *call);
void wpk_api_front_end_large(struct wpk_api_front *front, bool begun);

/* May the client do what takes this role? False after answering that it may not, which the audit
 * log gets to know. */
WPK_MUST_CHECK bool wpk_call_admit(struct wpk_call *call, enum wpk_auth_role role);

/* On the loop's thread, now and then: write those down. */
void wpk_api_front_tell(struct wpk_api_front *front, struct wpk_executor *executor);

/* A connection for this call, to be given back. When all are out, the thread waits for the next
 * one; each thread of the server has one at most, so whoever has one waits for nobody. NULL with
 * `diag` when none can be opened. */
struct wpk_store *wpk_api_front_take(struct wpk_api_front *front, struct wpk_diag *diag);
void wpk_api_front_give(struct wpk_api_front *front, struct wpk_store *store);

/* ---- api_request.c */
/* For struct wpk_http_options: `serve`, with the front as its user. */
bool wpk_api_front_serve(void *front, const struct wpk_http_request *request,
                         struct wpk_http_response *response);

#endif
