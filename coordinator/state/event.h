/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what a step of the coordinator is given. Texts and structs of an event are borrowed for
 * the step, unless a comment says that they are taken. */
#ifndef WPK_COORDINATOR_STATE_EVENT_H
#define WPK_COORDINATOR_STATE_EVENT_H

#include "common/net.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/worker.h"

struct wpk_asked;
struct wpk_opened;

enum wpk_event_kind {
    WPK_EVENT_MESSAGE,             /* from a worker */
    WPK_EVENT_GONE,                /* a worker's connection ended */
    WPK_EVENT_SUBMIT,              /* a job, decoded */
    WPK_EVENT_RESTORE,             /* a job from the store, at start */
    WPK_EVENT_RESTORE_OWNER,       /* an owner's device time, from the store, before the jobs */
    WPK_EVENT_RESTORE_ADMIN_STATE, /* a worker's admin state, from the store, before the jobs */
    WPK_EVENT_SET_OWNER,           /* an owner's weight and quota, at start and when they change */
    WPK_EVENT_CANCEL,
    WPK_EVENT_PAUSE,
    WPK_EVENT_RESUME,
    WPK_EVENT_WORKER_SET, /* an administrator sets a worker's admin state */
    WPK_EVENT_WORKER_END, /* a session's token was revoked or has expired */
    WPK_EVENT_DRAIN,      /* wpkd ends: nothing more is leased, polls are answered at once */
    WPK_EVENT_OPENED,     /* answers OPEN_SEARCH */
    WPK_EVENT_ASKED,      /* answers ASK */
    WPK_EVENT_KERNEL_PUT, /* answers PUT_KERNEL */
    /* an administrator changed what a problem serves, or revoked a kernel */
    WPK_EVENT_KERNEL_CHANGED,
    WPK_EVENT_ARTIFACT_LOST, /* a shared object that was asked for is lost */
    WPK_EVENT_HOLD_BUILDS,   /* artifacts have no room, or have room again */
    WPK_EVENT_TICK,          /* comes a few times a second */
};

/* An owner's weight and quota (SET_OWNER), or the device time it was charged (RESTORE_OWNER). */
struct wpk_owner_event {
    const char *name;   /* SET_OWNER: "": all owners that are not named */
    uint32_t weight;    /* SET_OWNER: from 1; device time is shared in proportion */
    uint32_t jobs_max;  /* SET_OWNER: queued, running and paused at a time */
    uint64_t device_ns; /* RESTORE_OWNER: as in the effect SET_OWNER; so is the next */
    uint64_t virtual_ns;
};

#define WPK_SERVED_MAX 16 /* accuracy classes of a problem that its searches are told of */

/* The kernels that a problem serves after an administrator has pinned, revoked or rolled back
 * one. */
struct wpk_kernel_event {
    uint64_t problem_id;
    struct wpk_served_kernel served[WPK_SERVED_MAX]; /* [served_count]; nothing in other classes */
    uint32_t served_count;
    char revoked_provider[WPK_PROVIDER_NAME_MAX]; /* "": nothing was revoked */
    char revoked_artifact[WPK_ID_MAX];            /* "": the vendor's kernel */
};

/* An event. The kind says which members of the union are set. */
struct wpk_event {
    enum wpk_event_kind kind;
    uint64_t now_ns; /* monotonic */
    uint64_t wall_ns;
    uint64_t request; /* request to be answered; 0: none */
    union {
        struct { /* MESSAGE, GONE */
            struct wpk_net_address address;
            const struct wpk_message *message; /* MESSAGE */
            uint64_t random;                   /* MESSAGE: unpredictable, for session numbers */
        };
        struct wpk_job_entry *job; /* SUBMIT, RESTORE: taken, with its ops */
        const char *job_id;        /* CANCEL, PAUSE, RESUME */
        struct {                   /* WORKER_SET, RESTORE_ADMIN_STATE */
            const char *worker;    /* its name, or its device's instance */
            enum wpk_admin_state admin_state;
            const char *reason; /* NULL: none */
        };
        struct { /* WORKER_END */
            uint64_t session;
            const char *fault; /* what is wrong with its token */
        };
        struct wpk_owner_event owner; /* RESTORE_OWNER, SET_OWNER */
        struct {                      /* OPENED, ASKED, KERNEL_PUT */
            uint64_t handle;          /* of the search */
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

/* Free what the event holds on the heap after its step, or without one; a job is not freed. */
void wpk_event_fini(struct wpk_event *event);

/* Answers to effects: the store has opened a search, a strategy was asked for candidates. */

#define WPK_ASKED_MAX WPK_WORK_MAX

/* The state of a search as the store had it. Counts and `best` are of the asks before the
 * window. */
struct wpk_opened {
    wpk_err err; /* the search is not opened: its operators fail */
    char reason[WPK_REASON_MAX];
    uint64_t search_id;
    uint64_t problem_id;
    uint64_t elapsed_ns;
    uint32_t ended_asks;
    bool exhausted;
    uint64_t kernel_id;              /* of this search's last result; 0: none */
    char own_artifact[WPK_ID_MAX];   /* of the best candidate in that result; "": none */
    struct wpk_served_kernel served; /* its file may be lost: none then */
    struct wpk_revoked revoked;      /* the latest of the problem */
    struct wpk_anchor anchor;        /* `now` is "" if its artifact is lost */
    uint32_t ask_count;
    uint32_t told_count; /* number of the first ask without a result */
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of failed asks; filled in where none was ok */
    struct wpk_best best[WPK_BEST_MAX];   /* best first; texts taken */
    uint32_t best_count;
    struct wpk_work_item *window; /* [ask_count - told_count]; taken, with its texts */
    /* In the key's order; ENDED if the history has the result; texts taken. */
    struct wpk_work_item vendors[WPK_PROVIDERS_MAX];
    uint32_t vendor_count;
    /* The plain kernel: ENDED if the history has it, or if all its candidates failed; `built` is
     * set if another problem has it. */
    struct wpk_work_item plain;
    uint32_t plain_number; /* of the plain kernel's candidate, from 1 */
    char plain_verified_by[WPK_WORKER_NAME_MAX];
};

/* A strategy's answer to an ASK. */
struct wpk_asked {
    wpk_err err; /* no space, no such strategy or gene: the operators fail */
    char reason[WPK_REASON_MAX];
    bool refused;   /* the strategy proposes nothing until it is told more results */
    bool exhausted; /* the strategy has no more candidates */
    double size_log2;
    struct wpk_work_item *items; /* [count]; ENDED if known, else OPEN; texts taken */
    uint32_t count;
};

/* Free an answer, after its step or without one, with what the step has not taken. */
void wpk_opened_free(struct wpk_opened *opened);
void wpk_asked_free(struct wpk_asked *asked);

#endif
