/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's conversation with wpkd, from hello to farewell.
 *
 *      [CLOSED] ── hello / welcome ──▶ [OPEN] ── stop ──▶ [DRAINING] ──▶ [LEAVING] ──▶ end
 *          ▲                             │                 what is timed    results sent,
 *          └── the session is not known ─┘                 ends             leases given back
 *
 * While wpkd is away, or says that it cannot record now, the engine goes on with what is held and
 * results wait; when as many wait as are kept, no more work is asked for. Two requests are under
 * way at most: a poll that waits for work, and one other. */
#ifndef WPK_WORKER_SESSION_H
#define WPK_WORKER_SESSION_H

#include "common/notify.h"
#include "schema/message.h"
#include "worker/engine.h"

struct wpk_session_options {
    const char *url;            /* of wpkd */
    const char *ca;             /* file of certificates trusted for tls+tcp; NULL: the system's */
    const char *token;          /* "": none */
    const char *name;           /* unique among workers: host/pid */
    const char *environment;    /* versions that break `exact`: schema/message.h */
    const char *const *vendors; /* [vendor_count] providers besides our own */
    int vendor_count;
    unsigned roles; /* WPK_WORKER_* */
    uint32_t slots; /* builds at a time; 0: it builds nothing */
    const struct wpk_worker_label *labels; /* [label_count] */
    uint32_t label_count;
    const char *work_dir;
    struct wpk_device device;
    struct wpk_engine *engine; /* borrowed */
    const struct wpk_notify *notify; /* the service manager; borrowed */
    bool is_private;           /* end when wpkd says that it ends */
    int stop_fd;               /* readable once the worker has to leave */
};

/* Work until told to leave.
 *
 *   errors  WPK_EMISMATCH  wpkd speaks another protocol version
 *           WPK_EACCES     wpkd refuses the token, or what the worker is for
 *           WPK_ESYSTEM    the engine cannot go on
 *           WPK_EINVAL     `url` is none
 */
WPK_MUST_CHECK wpk_err wpk_session_run(const struct wpk_session_options *options,
                                       struct wpk_diag *diag);

#endif
