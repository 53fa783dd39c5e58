/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: one struct for each session (worker.c). */
#ifndef WPK_COORDINATOR_STATE_WORKER_H
#define WPK_COORDINATOR_STATE_WORKER_H

#include "common/crypto.h"
#include "coordinator/state/admin_state.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/timer.h"

struct wpk_comparisons;
struct wpk_worker_class;
struct wpk_search;

#define WPK_WORKERS_MAX 16384 /* sessions at a time */
#define WPK_LEASE_MS 20000    /* a worker that was silent for so long is lost, with its leases */
#define WPK_SLEPT_MS 5000     /* a longer gap between two ticks: the machine was suspended */
#define WPK_GONE_MS 3000      /* a worker whose connection ended may come back for so long */
#define WPK_FAILED_MS 600000  /* one that left because it failed is listed for so long */

struct wpk_worker {
    uint64_t session;
    struct wpk_hello hello; /* without the token */
    bool is_local;          /* it said hello at a local socket, whose file decides who may */
    uint8_t token_hash[WPK_SHA256_SIZE]; /* of the token that let it in; not if is_local */
    char device_class[2 * WPK_DEVICE_TEXT_MAX];
    uint64_t name_hash;
    uint64_t device_hash; /* of its device's instance, or of its name if it has none */
    enum wpk_admin_state admin_state;
    const char *admin_reason;             /* of the admin state; borrowed; "": none */
    uint32_t peer;                        /* its connection; 0: ended */
    uint64_t heard_ns;                    /* when its last message came, or its poll was answered */
    uint64_t gone_ns;                     /* when the connection ended; 0: it has not */
    char failure[WPK_DIAG_TEXT_MAX];      /* why it can do no more work; "": it can */
    bool draining;                        /* it gave its leases back, and has not polled since */
    bool polling;                         /* a poll waits for work */
    struct wpk_search *awaited;           /* its poll waits for this ASK's answer; NULL: for none */
    struct wpk_net_address *poll_address; /* owned; of its last poll, as are the next two */
    uint32_t poll_want;
    uint64_t poll_until_ns;
    uint64_t running;         /* number of the lease that it runs, by its last poll; 0: none */
    uint64_t running_ns;      /* since when its polls name that lease */
    bool stuck;               /* the run lasts too long: it has no leases and gets none */
    uint64_t busy_ns;         /* its time since then is not charged yet */
    struct wpk_lease *leases; /* oldest first */
    struct wpk_lease *leases_last;
    uint32_t lease_count;
    struct wpk_comparisons *comparisons;   /* owned; with other workers' times; NULL: none yet */
    bool is_outlier;                       /* outlier.h */
    int throttled_count, sample_count;     /* of its last result with a time */
    bool available;                        /* may be given work: counted in its worker class */
    struct wpk_worker_class *worker_class; /* workers that can do the same work */
    /* List of workers whose polls wait: of its worker class, or of `awaited`. */
    struct wpk_worker *next;
    struct wpk_worker *prev;
    bool queued;                  /* in the worker class's list */
    struct wpk_worker *peer_next; /* next worker on the same connection */
    uint32_t place;               /* in the coordinator's array */
    struct wpk_timer timer;       /* when to answer its poll, or to look whether it is lost */
};

/* Handlers of events: a message; the end of a connection. */
void wpk_worker_message(struct wpk_coordinator *c);
void wpk_worker_gone(struct wpk_coordinator *c);
/* The worker's timer is due: answer its poll, or remove the worker if it was silent too long. */
void wpk_worker_look_at(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Handlers of events: an admin state is set; one is restored; a session's token is good no more;
 * wpkd is about to end. */
void wpk_worker_set(struct wpk_coordinator *c);
void wpk_worker_restore_admin_state(struct wpk_coordinator *c);
void wpk_worker_end(struct wpk_coordinator *c);
void wpk_worker_drain(struct wpk_coordinator *c);
void wpk_worker_free(struct wpk_worker *worker);

#endif
