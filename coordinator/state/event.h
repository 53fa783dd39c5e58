/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the coordinator. Its texts and structs are borrowed for the step, but for what is
 * said to be taken. */
#ifndef WPK_COORDINATOR_STATE_EVENT_H
#define WPK_COORDINATOR_STATE_EVENT_H

#include "common/net.h"
#include "coordinator/state/anchor.h"
#include "coordinator/state/final.h"
#include "coordinator/state/revoked.h"
#include "coordinator/state/worker_order.h"

struct wpk_job_entry;

#define WPK_ASKED_MAX WPK_WORK_MAX

enum wpk_event_kind {
    WPK_EVENT_MESSAGE,       /* from a worker */
    WPK_EVENT_GONE,          /* a worker's connection ended */
    WPK_EVENT_SUBMIT,        /* a job, decoded */
    WPK_EVENT_RESTORE,       /* a job from the store, at start */
    WPK_EVENT_RESTORE_OWNER, /* what an owner has used, from the store, before the jobs */
    WPK_EVENT_RESTORE_ORDER, /* what was ordered of a worker, likewise */
    WPK_EVENT_SET_OWNER,     /* an owner's weight and quota, at start and when they are changed */
    WPK_EVENT_CANCEL,
    WPK_EVENT_PAUSE,
    WPK_EVENT_RESUME,
    WPK_EVENT_WORKER_SET,     /* an operator's order for a worker */
    WPK_EVENT_WORKER_END,     /* a session's token is good no more */
    WPK_EVENT_DRAIN,          /* wpkd ends: no more leases, and polls are answered at once */
    WPK_EVENT_OPENED,         /* answers OPEN_SEARCH */
    WPK_EVENT_ASKED,          /* answers ASK */
    WPK_EVENT_KERNEL_PUT,     /* answers PUT_KERNEL */
    WPK_EVENT_KERNEL_CHANGED, /* an operator has: what a problem serves, or must not, is another */
    WPK_EVENT_ARTIFACT_LOST,  /* a shared object was asked for, and is not there any more */
    WPK_EVENT_HOLD_BUILDS,    /* what is built has no room until something has run; or it has */
    WPK_EVENT_TICK,           /* time passes: a few times a second */
};

/* What the store knew of a search. Counts and `best` are of the asks before the window. */
struct wpk_opened {
    wpk_err err; /* the store refused something of it: not opened, its operators fail */
    char reason[WPK_REASON_MAX];
    uint64_t search_id;
    uint64_t problem_id;
    uint64_t elapsed_ns;
    uint32_t ended_asks;
    bool exhausted;
    uint64_t kernel_id;            /* of this search's last result; 0: none */
    char own_artifact[WPK_ID_MAX]; /* of the best of our own in that result; "": none */
    uint64_t served_kernel_id;     /* of the problem; 0: none, or its file is lost */
    char served_provider[WPK_PROVIDER_NAME_MAX];
    char served_artifact[WPK_ID_MAX];
    struct wpk_revoked revoked; /* of the problem: the latest */
    struct wpk_anchor anchor;   /* `now` is "" where it is not there any more */
    uint32_t ask_count;
    uint32_t told_count; /* the first ask without a result */
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of the failed ones; filled in where none was ok */
    struct wpk_best best[WPK_BEST_MAX];   /* best first; texts taken */
    uint32_t best_count;
    struct wpk_piece *window; /* [ask_count - told_count]; taken, with its texts */
    /* Known ones ENDED; in the key's order; texts taken. */
    struct wpk_piece vendors[WPK_PROVIDERS_MAX];
    uint32_t vendor_count;
    /* The plain kernel: ENDED if it is known, or if all its candidates failed; with `built`, if
     * another problem has it. */
    struct wpk_piece plain;
    uint32_t plain_number; /* of the candidate, from 1 */
    char plain_verified_by[WPK_WORKER_NAME_MAX];
};

struct wpk_asked {
    wpk_err err; /* no space, no such strategy or gene: the operator fails */
    char reason[WPK_REASON_MAX];
    bool refused; /* nothing until more is told */
    bool exhausted;
    double size_log2;
    struct wpk_piece *items; /* [count]; known ones ENDED, the others OPEN; texts taken */
    uint32_t count;
};

/* What an owner may, or has used. */
struct wpk_owner_event {
    const char *name;   /* "" in SET_OWNER: whoever is not named */
    uint32_t weight;    /* SET_OWNER: of its share, from 1 */
    uint32_t jobs_max;  /* SET_OWNER: queued, running and paused at a time */
    uint64_t device_ns; /* RESTORE_OWNER, as SET_OWNER's effect had them */
    uint64_t share_ns;
};

/* What a problem serves in one class of accuracy. */
struct wpk_served_kernel {
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* the class */
    uint64_t kernel_id;
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact_sha256[WPK_ID_MAX]; /* "": a vendor's */
};

#define WPK_SERVED_MAX 16 /* classes of a problem that its searches are told of */

/* What a problem serves since an operator pinned, revoked or rolled back. */
struct wpk_kernel_event {
    uint64_t problem_id;
    struct wpk_served_kernel served[WPK_SERVED_MAX]; /* [served_count]; in other classes nothing */
    uint32_t served_count;
    char revoked_provider[WPK_PROVIDER_NAME_MAX]; /* "": nothing was revoked */
    char revoked_artifact[WPK_ID_MAX];            /* "": the vendor's */
};

struct wpk_event {
    enum wpk_event_kind kind;
    uint64_t now_ns; /* monotonic */
    uint64_t wall_ns;
    uint64_t random;                   /* unpredictable: for session numbers */
    struct wpk_net_address address;    /* MESSAGE, GONE */
    const struct wpk_message *message; /* MESSAGE */
    uint64_t request;                  /* whom to answer; 0: nobody */
    struct wpk_job_entry *job;         /* SUBMIT, RESTORE: taken, with its ops */
    const char *source;                /* SUBMIT: the job file */
    const char *job_id;                /* CANCEL, PAUSE, RESUME */
    const char *worker;                /* WORKER_SET, RESTORE_ORDER: its name */
    enum wpk_worker_order order;       /* WORKER_SET, RESTORE_ORDER */
    const char *reason;                /* WORKER_SET, RESTORE_ORDER; NULL: none. WORKER_END */
    uint64_t session;                  /* WORKER_END */
    struct wpk_owner_event owner;      /* RESTORE_OWNER, SET_OWNER */
    uint64_t handle;                   /* OPENED, ASKED, KERNEL_PUT: the search */
    struct wpk_opened *opened;
    struct wpk_asked *asked;
    uint64_t kernel_id;              /* KERNEL_PUT */
    struct wpk_kernel_event *kernel; /* KERNEL_CHANGED */
    char sha256[WPK_ID_MAX];         /* ARTIFACT_LOST */
    bool hold;                       /* HOLD_BUILDS */
};

/* Free an answer that was stepped, or never will be, with what is left of it. */
void wpk_opened_free(struct wpk_opened *opened);
void wpk_asked_free(struct wpk_asked *asked);

#endif
