/* SPDX-License-Identifier: Apache-2.0 */
/* A session's state, shared by session.c (the loop and the answers) and session_ask.c (the
 * requests). */
#ifndef WPK_WORKER_SESSION_SESSION_STATE_H
#define WPK_WORKER_SESSION_SESSION_STATE_H

#include "common/net.h"
#include "worker/session/holding.h"
#include "worker/session/session.h"

#define WPK_WORKER_SESSION_SLOT_POLL 0
#define WPK_WORKER_SESSION_SLOT_OTHER 1
#define WPK_WORKER_SESSION_SLOT_COUNT 2

#define WPK_WORKER_SESSION_HEARTBEAT_MS                                                            \
    5000 /* a quarter of the time after which wpkd takes leases back */
#define WPK_WORKER_SESSION_LEAVE_MS 3000 /* for the last results, and giving leases back */

struct wpk_worker_session {
    const struct wpk_worker_session_options *options;
    struct wpk_net_client *client;
    struct wpk_holding *holding;
    int wake_fd;
    uint64_t session;            /* 0: CLOSED */
    bool has_several;            /* addresses: go on to the next soon */
    uint32_t capacity;           /* leases that keep the engine busy */
    enum wpk_message_kind asked; /* the request under way on WPK_WORKER_SESSION_SLOT_OTHER */
    char asked_sha256[WPK_ID_MAX];
    wpk_work_id asked_for; /* put_artifact: the work item that it was built for */
    bool named;            /* a poll of this session named the leases held: they are ours again */
    uint64_t retry_ms;     /* pause after a failure; doubles */
    uint64_t retry_at_ns;  /* no request is sent before */
    uint64_t polled_ns;    /* when the last poll went out */
    uint64_t fed_ns;       /* when the service manager's watchdog was last fed */
    uint64_t answered_ns;  /* when wpkd last answered; 0: never */
    uint64_t loss_ns;      /* when it was last logged that there is no connection */
    wpk_err trouble;       /* why wpkd refuses or is not reached; WPK_OK: it answers */
    uint64_t trouble_ns;   /* when that refusal was logged; 0: it is not reached */
    uint64_t worked_ns;    /* when it last held work; before that, its start */
    uint64_t drain_due_ns; /* when it leaves, with leave_after_ns */
    uint64_t drain_ns;     /* DRAINING since; 0: not */
    uint64_t drain_lease;  /* number of the lease that was being timed then; 0: none */
    uint64_t leave_ns;     /* LEAVING since; 0: not */
    bool gave_back;
    bool ended;
    wpk_err err;
    struct wpk_diag *diag;
};

/* Send the next request on each slot that is free. */
wpk_err wpk_worker_session_ask(struct wpk_worker_session *s);

#endif
