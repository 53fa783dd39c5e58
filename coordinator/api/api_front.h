/* SPDX-License-Identifier: Apache-2.0 */
/* The API on the HTTP server's threads. They answer requests that need neither the coordinator's
 * state nor a change, from the index and from read-only connections to the store. */
#ifndef WPK_COORDINATOR_API_API_FRONT_H
#define WPK_COORDINATOR_API_API_FRONT_H

#include "coordinator/api/api.h"

#define WPK_API_READERS_MAX 16 /* read-only connections to the store */

struct wpk_api_front;

struct wpk_api_front_options {
    const char *data_dir; /* borrowed, like all fields */
    struct wpk_index *index;
    const struct wpk_clock *clock;
    const char *public_key; /* of the signing key; NULL: none */
    const struct wpk_sign *sign;
};

/*   owns    caller frees, after the server and before the index */
struct wpk_api_front *wpk_api_front_new(const struct wpk_api_front_options *options);
void wpk_api_front_free(struct wpk_api_front *front);

const struct wpk_api_front_options *wpk_api_front_options(const struct wpk_api_front *front);

struct wpk_page_cache;
struct wpk_page_cache *wpk_api_front_pages(struct wpk_api_front *front);

struct wpk_call;

/* Note a refusal, on any thread. The audit log gets a line for each actor, token, peer and reason:
 * the first at once, then one a minute with the number of refusals. Past WPK_API_REFUSALS_MAX of
 * them at a time, refusals are only counted. `untold`: earlier refusals that were not noted. */
#define WPK_API_REFUSALS_MAX 32
#define WPK_API_REFUSAL_NS (60 * (uint64_t)WPK_NS_PER_S)
void wpk_api_front_refuse(struct wpk_api_front *front, const struct wpk_identity *identity,
                          const char *reason, uint64_t untold);
/* Begin a large request, or a batch of lookups that takes as long. At most WPK_API_LARGE_MAX of
 * them run at a time, so that other threads stay free; past that, false after answering so. */
#define WPK_API_LARGE_MAX 2
#define WPK_API_LARGE_SIZE ((size_t)64 << 10) /* bytes; smaller ones take some tenths of a second */
WPK_MUST_CHECK bool wpk_api_front_begin_large(struct wpk_call *call);
void wpk_api_front_end_large(struct wpk_api_front *front, bool begun);

/* True if the client has this role; false after answering that it has not, which is noted. */
WPK_MUST_CHECK bool wpk_call_admit(struct wpk_call *call, enum wpk_auth_role role);

/* On the loop's thread, regularly: write the noted refusals into the audit log. */
void wpk_api_front_tell(struct wpk_api_front *front, struct wpk_executor *executor);

/* Take a connection to the store, to be given back. When all are taken, the thread waits for one. A
 * thread has at most one, so that no thread waits while it has one. NULL with `diag` when none can
 * be opened. */
struct wpk_store *wpk_api_front_take(struct wpk_api_front *front, struct wpk_diag *diag);
void wpk_api_front_give(struct wpk_api_front *front, struct wpk_store *store);

/* ---- api_request.c */
/* `serve` of struct wpk_http_options; the front is its `serve_user`. */
bool wpk_api_front_serve(void *front, const struct wpk_http_request *request,
                         struct wpk_api_answer *answer);

#endif
