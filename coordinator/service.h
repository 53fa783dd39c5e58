/* SPDX-License-Identifier: Apache-2.0 */
/* wpkd at work: the loop, its sockets, its lock and its clock around the coordinator. */
#ifndef WPK_COORDINATOR_SERVICE_H
#define WPK_COORDINATOR_SERVICE_H

#include "common/notify.h"
#include "coordinator/config.h"

struct wpk_service_options {
    const struct wpk_config *config;
    const struct wpk_notify_environment *environment;
    /* Read the configuration again, at SIGHUP; `out` is then the service's to end. NULL: SIGHUP
     * ends the process, as it does. */
    wpk_err (*reload)(void *user, struct wpk_config *out, struct wpk_diag *diag);
    void *user;
};

/* Serve until a signal, or until idle as the config says.
 *
 *   errors  WPK_EBUSY     another wpkd works on the data directory
 *           WPK_EINVAL    what the service manager passed in
 *           WPK_ECORRUPT, WPK_EMISMATCH, WPK_EACCES, WPK_ENOSPC  the store, now or later: what was
 *                         acknowledged is in it
 *           and what opening the sockets says
 */
WPK_MUST_CHECK wpk_err wpk_service_run(const struct wpk_service_options *options,
                                       struct wpk_diag *diag);

#endif
