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

#endif
