/* SPDX-License-Identifier: Apache-2.0 */
/* Socket activation: sockets that the service manager has opened for wpkd. Clients can connect
 * while wpkd starts, and sockets may be at ports that only root can bind. A socket takes the place
 * of the clients' listener at the same address: one configuration serves with and without it.
 *
 * Workers' sockets cannot be passed in, because NNG opens its own. */
#ifndef WPK_COORDINATOR_ACTIVATION_H
#define WPK_COORDINATOR_ACTIVATION_H

#include "coordinator/config.h"

/* Find the listener of config->http at the address of the socket `fd`, and set its entry of fds[]
 * from -1 to `fd`.
 *
 *   shape   fds[config->http_count]
 *   errors  WPK_EINVAL  `fd` is no listening stream socket, no listener has its address, or the
 *                       listener has a socket already
 */
WPK_MUST_CHECK wpk_err wpk_activation_place(int fd, const struct wpk_config *config, int *fds,
                                            struct wpk_diag *diag);

#endif
