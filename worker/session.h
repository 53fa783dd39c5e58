/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's conversation with wpkd, from hello to farewell.
 *
 *      [CLOSED] ── hello / welcome ──▶ [OPEN] ── stop ──▶ [LEAVING] ── leases given back ──▶ end
 *          ▲                             │
 *          └── the session is not known ─┘
 *
 * While wpkd is away the engine goes on with what is held, and results wait. Two requests are under
 * way at most: a poll that waits for work, and one other. */
#ifndef WPK_WORKER_SESSION_H
#define WPK_WORKER_SESSION_H

#include "schema/device.h"
#include "worker/engine.h"

struct wpk_session_options {
    const char *url;            /* of wpkd */
    const char *name;           /* unique among workers: host/pid */
    const char *environment;    /* versions that break `exact`: schema/message.h */
    const char *const *vendors; /* [vendor_count] providers besides our own */
    int vendor_count;
    const char *work_dir;
    struct wpk_device device;
    struct wpk_engine *engine; /* borrowed */
    bool is_private;           /* end when wpkd says that it ends */
    int stop_fd;               /* readable once the worker has to leave */
};

/* Work until told to leave.
 *
 *   errors  WPK_EMISMATCH  wpkd speaks another protocol version
 *           WPK_ESYSTEM    the engine cannot go on
 *           WPK_EINVAL     `url` is none
 */
WPK_MUST_CHECK wpk_err wpk_session_run(const struct wpk_session_options *options,
                                       struct wpk_diag *diag);

#endif
