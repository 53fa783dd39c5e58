/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that the service manager opened for us: a start of wpkd refuses no connection, and they
 * may be at ports that only root can bind. Each takes the place of the clients' listener that the
 * configuration has at the same address, so that one configuration serves with and without.
 *
 * Workers' sockets cannot be passed in: NNG opens its own. */
#ifndef WPK_COORDINATOR_ACTIVATION_H
#define WPK_COORDINATOR_ACTIVATION_H

#include "coordinator/config.h"

/* Which listener of config->http is this socket? fds[] of it, -1 before, becomes `fd`.
 *
 *   shape   fds[config->http_count]
 *   errors  WPK_EINVAL  no listening stream socket; at no listener's address; at that of one that
 *                       has a socket already
 */
WPK_MUST_CHECK wpk_err wpk_activation_place(int fd, const struct wpk_config *config, int *fds,
                                            struct wpk_diag *diag);

#endif
