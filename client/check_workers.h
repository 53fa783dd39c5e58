/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers of a service a job would find. */
#ifndef WPK_CLIENT_CHECK_WORKERS_H
#define WPK_CLIENT_CHECK_WORKERS_H

#include "client/session.h"

/* Count the service's workers of the kind that are ready.
 *   errors  those of wpk_session_open, wpk_list_fetch and wpk_api_decode_workers */
WPK_MUST_CHECK wpk_err wpk_check_workers(const struct wpk_command_context *context,
                                         const struct wpk_session_options *options,
                                         const char *kind, int *out, struct wpk_diag *diag);

#endif
