/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in, and under which name this host may be called. From any thread. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_POLICY_H
#define WPK_COORDINATOR_HTTP_HTTP_POLICY_H

#include "coordinator/access/auth.h"
#include "coordinator/http/http.h"
#include "coordinator/http/http_listener.h"

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
    uint64_t second;               /* the one that is counted */
    uint32_t told;                 /* in this second */
    uint64_t untold;
};

void wpk_http_policy_init(struct wpk_http_policy *policy, const struct wpk_http_options *options);
void wpk_http_policy_fini(struct wpk_http_policy *policy);

/*   errors  WPK_ERANGE  too many names, or one that is too long; then all stay
 */
WPK_MUST_CHECK wpk_err wpk_http_policy_set_names(struct wpk_http_policy *policy,
                                                 const char *const *names, uint32_t count,
                                                 struct wpk_diag *diag);

/* May there be such a listener: has it what it needs, tokens and TLS?
 *
 *   errors  WPK_EINVAL
 */
WPK_MUST_CHECK wpk_err wpk_http_policy_check_listener(const struct wpk_http_policy *policy,
                                                      const struct wpk_http_listen *listen,
                                                      const struct wpk_http_listener *listener,
                                                      struct wpk_diag *diag);

/* May a request on this listener name this host (NULL: it named none)? */
bool wpk_http_policy_host_allowed(struct wpk_http_policy *policy,
                                  const struct wpk_http_listener *listener, bool tls,
                                  const char *host);

/* Who asks: the owner of the token in `authorization` (NULL: none was shown), or else `local` if
 * that is somebody. What is refused is counted, and told.
 *
 *   errors  WPK_EACCES  with what may be said to him
 */
WPK_MUST_CHECK wpk_err wpk_http_policy_identify(struct wpk_http_policy *policy,
                                                const char *authorization,
                                                const struct wpk_identity *local, uint64_t wall_ns,
                                                struct wpk_identity *out, struct wpk_diag *diag);

/* A user of this machine is nobody here: that is counted, and told. */
void wpk_http_policy_refuse_user(struct wpk_http_policy *policy, const char *name,
                                 uint64_t wall_ns);

#endif
