/* SPDX-License-Identifier: Apache-2.0 */
/* wpkd at work: the loop, its sockets, its lock and its clock around the coordinator. */
#ifndef WPK_COORDINATOR_SERVICE_H
#define WPK_COORDINATOR_SERVICE_H

#include "coordinator/config.h"

/* Serve until a signal, or until idle as the config says.
 *
 *   errors  WPK_EBUSY     another wpkd works on the data directory
 *           WPK_ECORRUPT, WPK_EMISMATCH, WPK_EACCES, WPK_ENOSPC  the store, now or later: what was
 *                         acknowledged is in it
 *           and what opening the sockets says
 */
WPK_MUST_CHECK wpk_err wpk_service_run(const struct wpk_config *config, struct wpk_diag *diag);

#endif
