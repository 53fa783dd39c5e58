/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's session with wpkd, from hello to the end.
 *
 *      [CLOSED] ── hello / welcome ──▶ [OPEN] ── stop ──▶ [DRAINING] ──▶ [LEAVING] ──▶ end
 *          ▲                             │                 what is timed    results sent,
 *          └── the session is not known ─┘                 ends             leases given back
 *
 * While wpkd is away, or answers that it cannot record now, the engine goes on with the leases held
 * and the session keeps the results; while it keeps too many, it asks for no more work. At most two
 * requests are under way: a poll that waits for work, and one other.
 *
 * When a worker dies, wpkd waits 3 s after the end of its connection, or 20 s after its last
 * message, and then takes its leases back (coordinator/state/lease.h). The work item that the
 * worker said it was running, or else its oldest one, has used one of its three attempts; the
 * others go back unblamed. On the machine, the engine's processes die with the worker (process.h),
 * another worker can take the device (device_lock.h), and the next one removes its files
 * (workplace.h). */
#ifndef WPK_WORKER_SESSION_SESSION_H
#define WPK_WORKER_SESSION_SESSION_H

#include "common/notify.h"
#include "schema/message.h"
#include "worker/engine/engine.h"

struct wpk_worker_session_options {
    const char *url;            /* where wpkd listens */
    const char *ca;             /* file of certificates trusted for tls+tcp; NULL: the system's */
    const char *token;          /* "": none */
    const char *name;           /* unique among workers: host/pid */
    const char *environment;    /* versions that times depend on: schema/message.h */
    const char *const *vendors; /* [vendor_count] providers besides our own */
    int vendor_count;
    const struct wpk_message_back_end *back_ends; /* [back_end_count] besides the first */
    uint32_t back_end_count;
    unsigned roles;                        /* bits WPK_WORKER_* */
    uint32_t slots;                        /* builds at a time; 0: the worker does not build */
    const struct wpk_worker_label *labels; /* [label_count] */
    uint32_t label_count;
    const char *work_dir;
    struct wpk_device device;
    struct wpk_engine *engine;       /* borrowed */
    const struct wpk_notify *notify; /* the service manager; borrowed */
    bool is_private;                 /* end when wpkd ends */
    uint64_t idle_ns;                /* leave after so long without work; 0: never */
    uint64_t leave_after_ns;         /* leave so long after the start; 0: never */
    int stop_fd;                     /* readable once the worker has to end */
};

/* Work until stop_fd is readable, a private wpkd ends, or it is time to leave.
 *
 *   errors  WPK_EMISMATCH  wpkd speaks another protocol version
 *           WPK_EACCES     wpkd refuses the token, or the roles
 *           WPK_ESYSTEM    the engine has failed, or no descriptor is left
 *           WPK_EINVAL     `url` is not an address, or an answer makes no sense
 */
wpk_err wpk_worker_session_run(const struct wpk_worker_session_options *options,
                               struct wpk_diag *diag);

#endif
