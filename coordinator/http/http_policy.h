/* SPDX-License-Identifier: Apache-2.0 */
/* Which clients and which Host names are accepted. From any thread. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_POLICY_H
#define WPK_COORDINATOR_HTTP_HTTP_POLICY_H

#include "common/buf.h"
#include "coordinator/access/auth.h"
#include "coordinator/http/http.h"
#include "coordinator/http/http_acceptor.h"
#include "coordinator/http/http_head.h"

#include <pthread.h>

#define WPK_HTTP_HOST_SIZE 256 /* bytes of a name, with the NUL */

struct wpk_http_policy {
    struct wpk_auth *auth;
    void (*refused)(void *user, const char *peer, const char *reason, uint64_t untold);
    void *user;
    pthread_rwlock_t names_lock; /* guards the names */
    char names[WPK_HTTP_HOSTS_MAX][WPK_HTTP_HOST_SIZE];
    uint32_t name_count;
    pthread_mutex_t refusals_lock; /* guards all below */
    uint64_t second;               /* the current second */
    uint32_t told;                 /* calls of `refused` in this second */
    uint64_t untold;               /* refusals since the last call */
};

void wpk_http_policy_init(struct wpk_http_policy *policy, const struct wpk_http_options *options);
void wpk_http_policy_fini(struct wpk_http_policy *policy);

/*   errors  WPK_ERANGE  too many names, or one that is too long; the old names stay
 */
wpk_err wpk_http_policy_set_names(struct wpk_http_policy *policy, const char *const *names,
                                  uint32_t count, struct wpk_diag *diag);

/* Check that a listener has the tokens and the TLS that it needs.
 *
 *   errors  WPK_EINVAL
 */
wpk_err wpk_http_policy_check_listener(const struct wpk_http_policy *policy,
                                       const struct wpk_listen *listen,
                                       const struct wpk_http_listener *listener,
                                       struct wpk_diag *diag);

/* True if a request on this listener may have this Host (NULL: absent). */
bool wpk_http_policy_host_allowed(struct wpk_http_policy *policy,
                                  const struct wpk_http_listener *listener, bool tls,
                                  const char *host);

/* Identify the client: the owner of the token in `authorization`, or where that is NULL (absent)
 * `local` if it has roles. A refusal is counted and reported to `refused`.
 *
 *   errors  WPK_EACCES  with a reason that the client may be told
 */
wpk_err wpk_http_policy_identify(struct wpk_http_policy *policy, const char *authorization,
                                 const struct wpk_identity *local, uint64_t wall_ns,
                                 struct wpk_identity *out, struct wpk_diag *diag);

/* True if the client has a valid cookie, and shows no token. */
WPK_MUST_CHECK bool wpk_http_policy_has_cookie(struct wpk_http_policy *policy,
                                               const struct wpk_http_head *head,
                                               const struct wpk_identity *local, uint64_t wall_ns,
                                               struct wpk_identity *out);

/* Count the refusal of a user of this machine, and report it to `refused`. */
void wpk_http_policy_refuse_user(struct wpk_http_policy *policy, const char *name,
                                 uint64_t wall_ns);

/* The answer to a request on its way to the server; it owns its text. */

enum wpk_api_how {
    WPK_API_NOW,   /* the answer is complete */
    WPK_API_LATER, /* an effect of a step, or a store write, will answer */
    WPK_API_QUEUE, /* on the server's threads: the loop has to answer */
};

struct wpk_api_answer {
    enum wpk_api_how how;
    int status;
    const char *content_type;
    char location[64];            /* "" for none */
    char allow[40];               /* "" for none */
    char etag[72];                /* with its quotes; "" for none */
    const char *policy;           /* of a page; NULL: none */
    char cookie[WPK_COOKIE_SIZE]; /* "" for none */
    uint32_t retry_after_s;
    struct wpk_buf body;
    /* A borrowed body instead of `body`, until `release` is called with `owner`; NULL: none. */
    const char *borrowed; /* [borrowed_size], not NUL-terminated */
    size_t borrowed_size;
    void (*release)(void *owner);
    void *owner;
};

void wpk_api_answer_fini(struct wpk_api_answer *answer);
/* Fill the server's response, which borrows from `answer`. */
void wpk_api_response(const struct wpk_api_answer *answer, struct wpk_http_response *out);
/* Make the answer a problem document (RFC 9457); `diag` may be NULL. Returns false. */
bool wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag);

#endif
