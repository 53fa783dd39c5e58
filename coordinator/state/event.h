/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the coordinator. Its texts and structs are borrowed for the step, but for what is
 * said to be taken. */
#ifndef WPK_COORDINATOR_STATE_EVENT_H
#define WPK_COORDINATOR_STATE_EVENT_H

#include "common/net.h"
#include "coordinator/state/admin_state.h"

struct wpk_asked;
struct wpk_job_entry;
struct wpk_opened;

enum wpk_event_kind {
    WPK_EVENT_MESSAGE,             /* from a worker */
    WPK_EVENT_GONE,                /* a worker's connection ended */
    WPK_EVENT_SUBMIT,              /* a job, decoded */
    WPK_EVENT_RESTORE,             /* a job from the store, at start */
    WPK_EVENT_RESTORE_OWNER,       /* what an owner has used, from the store, before the jobs */
    WPK_EVENT_RESTORE_ADMIN_STATE, /* what was ordered of a worker, likewise */
    WPK_EVENT_SET_OWNER, /* an owner's weight and quota, at start and when they are changed */
    WPK_EVENT_CANCEL,
    WPK_EVENT_PAUSE,
    WPK_EVENT_RESUME,
    WPK_EVENT_WORKER_SET,     /* an operator sets a worker's admin state */
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

/* What an owner may, or has used. */
struct wpk_owner_event {
    const char *name;   /* "" in SET_OWNER: whoever is not named */
    uint32_t weight;    /* SET_OWNER: of its share, from 1 */
    uint32_t jobs_max;  /* SET_OWNER: queued, running and paused at a time */
    uint64_t device_ns; /* RESTORE_OWNER, as SET_OWNER's effect had them */
    uint64_t virtual_ns;
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

/* The kind says which of the union's members are there. */
struct wpk_event {
    enum wpk_event_kind kind;
    uint64_t now_ns; /* monotonic */
    uint64_t wall_ns;
    uint64_t request; /* whom to answer; 0: nobody */
    union {
        struct {                               /* MESSAGE, GONE */
            struct wpk_net_address address;
            const struct wpk_message *message; /* MESSAGE */
            uint64_t random;                   /* MESSAGE: unpredictable, for session numbers */
        };
        struct {                       /* SUBMIT, RESTORE */
            struct wpk_job_entry *job; /* taken, with its ops */
            const char *source;        /* SUBMIT: the job file */
        };
        const char *job_id; /* CANCEL, PAUSE, RESUME */
        struct {            /* WORKER_SET, RESTORE_ADMIN_STATE */
            const char *worker; /* its name */
            enum wpk_admin_state admin_state;
            const char *reason; /* NULL: none */
        };
        struct { /* WORKER_END */
            uint64_t session;
            const char *fault; /* of its token */
        };
        struct wpk_owner_event owner; /* RESTORE_OWNER, SET_OWNER */
        struct {                      /* OPENED, ASKED, KERNEL_PUT */
            uint64_t handle;          /* the search */
            union {
                struct wpk_opened *opened;
                struct wpk_asked *asked;
                uint64_t kernel_id;
            };
        };
        struct wpk_kernel_event *kernel; /* KERNEL_CHANGED */
        char sha256[WPK_ID_MAX];         /* ARTIFACT_LOST */
        bool hold;                       /* HOLD_BUILDS */
    };
};

/* Free what an event has brought on the heap, and what a step has left of it, but for a job. */
void wpk_event_fini(struct wpk_event *event);

#endif
