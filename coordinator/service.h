/* SPDX-License-Identifier: Apache-2.0 */
/* The service: the loop, sockets, lock and clock around the coordinator. */
#ifndef WPK_COORDINATOR_SERVICE_H
#define WPK_COORDINATOR_SERVICE_H

#include "common/notify.h"
#include "coordinator/config.h"

struct wpk_service_options {
    const struct wpk_config *config;
    const struct wpk_notify_environment *environment;
    /* Read the configuration again, at SIGHUP. The service calls wpk_config_fini() on `out`. NULL:
     * SIGHUP ends the process, as is its default. */
    wpk_err (*reload)(void *user, struct wpk_config *out, struct wpk_diag *diag);
    void *user;
};

/* Serve until a signal, or until idle as long as the configuration says.
 *
 *   errors  WPK_EBUSY     another wpkd works on the data directory
 *           WPK_EINVAL    the service manager passed a wrong socket or variable
 *           WPK_ECORRUPT, WPK_EMISMATCH, WPK_EACCES, WPK_ENOSPC  the store failed, at start or
 *                         later: all that was acknowledged is in it
 *           and those of opening the sockets
 */
wpk_err wpk_service_run(const struct wpk_service_options *options, struct wpk_diag *diag);

/* Socket activation: sockets that the service manager has opened for wpkd. Clients can connect
 * while wpkd starts, and sockets may be at ports that only root can bind. A socket takes the place
 * of the clients' listener at the same address: one configuration serves with and without it.
 *
 * Workers' sockets cannot be passed in, because NNG opens its own. */

/* Find the listener at the address of the socket `fd`, and give it that.
 *
 *   errors  WPK_EINVAL  `fd` is no listening stream socket, no listener has its address, or the
 *                       listener has a socket already
 */
wpk_err wpk_activation_place(int fd, struct wpk_listen *listeners, uint32_t count,
                             struct wpk_diag *diag);

#endif
