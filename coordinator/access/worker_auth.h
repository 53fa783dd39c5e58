/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication of workers, before the coordinator sees a hello. Later messages name a session of
 * 64 random bits, on the hello's connection; a session ends with its token (executor_worker.c). */
#ifndef WPK_COORDINATOR_ACCESS_WORKER_AUTH_H
#define WPK_COORDINATOR_ACCESS_WORKER_AUTH_H

#include "coordinator/access/auth.h"
#include "schema/message.h"

/* Check the token of a hello: the worker needs the role `build` to build and `measure` to run.
 * *identity is the token's owner, also when a role is missing; zeroed when the token is not valid.
 * `diag` gets a reason that the worker may be told.
 *
 *   errors  WPK_EACCES
 */
WPK_MUST_CHECK wpk_err wpk_worker_auth_check(struct wpk_auth *auth, const struct wpk_hello *hello,
                                             uint64_t wall_ns, struct wpk_identity *identity,
                                             struct wpk_diag *diag);

#endif
