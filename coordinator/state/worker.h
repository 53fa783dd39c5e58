/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: their sessions, and what is known of each (worker.c). */
#ifndef WPK_COORDINATOR_STATE_WORKER_H
#define WPK_COORDINATOR_STATE_WORKER_H

#include "common/crypto.h"
#include "coordinator/state/admin_state.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/timer.h"

struct wpk_comparisons;
struct wpk_worker_class;
struct wpk_search;

#define WPK_WORKERS_MAX 16384 /* sessions that live */
#define WPK_LEASE_MS 20000    /* after the last word of its worker; what it names is renewed */
#define WPK_SLEPT_MS 5000     /* between two ticks: the machine was suspended, not idle */
#define WPK_GONE_MS 3000      /* a worker whose connection ended may come back that long */

struct wpk_worker {
    uint64_t session;
    struct wpk_hello hello; /* without the token */
    bool is_local;          /* it said hello at a local socket, whose file says who may */
    uint8_t token_hash[WPK_SHA256_SIZE]; /* of the token that let it in; not of a local one */
    char device_class[2 * WPK_DEVICE_TEXT_MAX];
    uint64_t name_hash;
    uint64_t device_hash; /* of its device's instance: the same whatever name it has next */
    enum wpk_admin_state admin_state;
    const char *order_reason; /* borrowed; "" */
    uint32_t peer;            /* its connection; 0: ended */
    uint64_t heard_ns;
    uint64_t gone_ns;                     /* when the connection ended; 0: it has not */
    bool draining;                        /* gave its leases back */
    bool polling;                         /* a poll waits for work */
    struct wpk_search *awaited;           /* whose strategy is being asked for it; NULL: none */
    struct wpk_net_address *poll_address; /* owned; of that poll */
    uint32_t poll_want;
    uint64_t poll_until_ns;
    uint64_t running;         /* number of the lease that it times, as it said last; 0: none */
    uint64_t running_ns;      /* since when it says that */
    bool stuck;               /* that lasts too long: it holds no lease and gets none */
    uint64_t busy_ns;         /* it has been at work since, or since its last result */
    struct wpk_lease *leases; /* oldest first */
    struct wpk_lease *leases_last;
    uint32_t lease_count;
    struct wpk_comparisons *comparisons; /* owned; of its times with others'; NULL: none yet */
    bool is_outlier;
    bool available;                        /* may be given work: counted in its worker class */
    struct wpk_worker_class *worker_class; /* of workers that can do the same */
    /* Those whose poll waits: of the worker class; or of the search that is awaited, in no
     * order. */
    struct wpk_worker *next;
    struct wpk_worker *prev;
    bool queued;                  /* in the worker class's list */
    struct wpk_worker *peer_next; /* on the same connection */
    uint32_t place;               /* in the coordinator's array */
    struct wpk_timer timer;       /* its poll is to be answered, or it may be lost */
};

void wpk_worker_message(struct wpk_coordinator *c);
void wpk_worker_gone(struct wpk_coordinator *c);
/* Its timer is due: answer its poll, or take its leases back if nothing was heard of it. */
void wpk_worker_look_at(struct wpk_coordinator *c, struct wpk_worker *worker);
void wpk_worker_set(struct wpk_coordinator *c);
void wpk_worker_restore_admin_state(struct wpk_coordinator *c);
void wpk_worker_end(struct wpk_coordinator *c);
void wpk_worker_drain(struct wpk_coordinator *c);
void wpk_worker_free(struct wpk_worker *worker);

#endif
