/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers are let in. Asked before the coordinator sees a hello: later messages name a
 * session, a number of 64 bits, on the connection that said hello; a session ends with its token
 * (executor_worker.c). */
#ifndef WPK_COORDINATOR_ACCESS_WORKER_AUTH_H
#define WPK_COORDINATOR_ACCESS_WORKER_AUTH_H

#include "coordinator/access/auth.h"
#include "schema/message.h"

/* May it join? It needs a token with the role `build` to build and `measure` to run. `identity` is
 * whose token it is, refused or not; zeroed where that is not known. `diag` gets a reason that may
 * be told to it.
 *
 *   errors  WPK_EACCES
 */
WPK_MUST_CHECK wpk_err wpk_worker_auth_check(struct wpk_auth *auth, const struct wpk_hello *hello,
                                             uint64_t wall_ns, struct wpk_identity *identity,
                                             struct wpk_diag *diag);

#endif
