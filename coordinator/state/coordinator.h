/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator: a state machine that decides, and does nothing itself.
 *
 *      event ──▶ step(state, event) ──▶ effects ──▶ performed by service.c, or by a simulator
 *        ▲                                 │
 *        └──── what an effect found out ◀──┘     (opened, asked, kernel_put)
 *
 * It reads no clock and draws no random number: both come with the event. Effects are performed in
 * their order; what leaves the process (reply, respond) is held back until the batch's other
 * effects are durable. What answers an effect may come many steps later, when its search is gone:
 * then it is freed and nothing else. Pointers in an effect reach into the state and into the event,
 * and are good until the next step; what its records, pieces and texts point to lies in the
 * effects' arena, or came with the event. */
#ifndef WPK_COORDINATOR_STATE_COORDINATOR_H
#define WPK_COORDINATOR_STATE_COORDINATOR_H

#include "common/arena.h"
#include "common/net.h"
#include "coordinator/state/state.h"

#define WPK_JOBS_LIVE_MAX 1024 /* queued and running */
#define WPK_ASKED_MAX WPK_WORK_MAX

struct wpk_coordinator;

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

enum wpk_effect_kind {
    /* what leaves, once the batch is durable */
    WPK_EFFECT_REPLY,           /* address, message */
    WPK_EFFECT_RESPOND_JOB,     /* request, job, status */
    WPK_EFFECT_RESPOND_WORKER,  /* request, status, text: its name, order, detail: the reason */
    WPK_EFFECT_RESPOND_PROBLEM, /* request, status, err, text, retry_after_s */
    /* the store */
    WPK_EFFECT_PUT_JOB,     /* job, source */
    WPK_EFFECT_SET_JOB,     /* job: its state; its document when it has ended */
    WPK_EFFECT_SET_OP,      /* job, index */
    WPK_EFFECT_OPEN_SEARCH, /* search ──▶ OPENED */
    WPK_EFFECT_SET_SEARCH,  /* search: its counters */
    WPK_EFFECT_PUT_TRIAL,   /* search, work, provider, piece, record, worker: first result wins */
    /* search, entry, worker: a final's measurement; with a record: what its verification gave */
    WPK_EFFECT_PUT_TIMES,
    /* search, served, own, baseline, kept, plain ──▶ KERNEL_PUT */
    WPK_EFFECT_PUT_KERNEL,
    WPK_EFFECT_PUT_PLAIN,        /* search, served = own = plain: for its problem's kernels */
    WPK_EFFECT_SET_OWNER,        /* owner: name, device_ns, share_ns */
    WPK_EFFECT_SET_WORKER_ORDER, /* text: its name, order, detail: the reason; NONE: forget it */
    WPK_EFFECT_PUT_ARTIFACT,     /* address, message: answered by who performs it */
    WPK_EFFECT_GET_ARTIFACT,     /* address, message: likewise */
    /* the strategy */
    WPK_EFFECT_ASK,          /* search, count ──▶ ASKED */
    WPK_EFFECT_TELL,         /* search, index of the ask, piece */
    WPK_EFFECT_CLOSE_SEARCH, /* handle: nobody needs its strategy any more */
    /* the log */
    WPK_EFFECT_WARN, /* text: event name; detail */
    WPK_EFFECT_LOG,  /* text: event name; detail */
};

struct wpk_effect {
    enum wpk_effect_kind kind;
    struct wpk_net_address address;
    const struct wpk_message *message;
    uint64_t request;
    int status; /* HTTP */
    wpk_err err;
    const char *text;
    const char *detail;
    const struct wpk_job_entry *job;
    const char *source;
    uint32_t index;
    uint32_t count;
    const struct wpk_search *search;
    uint64_t handle;
    wpk_work_id work;
    const struct wpk_record *record;
    const struct wpk_worker *worker; /* NULL: nobody measured it, it was abandoned */
    const struct wpk_final_entry *entry;
    const struct wpk_final_entry *served;
    const struct wpk_final_entry *own;
    const struct wpk_final_entry *baseline;
    /* PUT_KERNEL: recorded beside `served`, to follow it if it is revoked; NULL: none */
    const struct wpk_final_entry *kept[WPK_FINAL_VERIFIED_MAX];
    const struct wpk_final_entry *plain; /* PUT_KERNEL: likewise, the last one; NULL: none */
    bool serve;                          /* PUT_KERNEL: it replaces what the problem serves */
    /* In the effects' arena: */
    const struct wpk_piece *piece; /* what ended, with its text: a candidate; of a vendor "" */
    const char *provider;
    const char *spent; /* PUT_TRIAL: a shared object that nobody runs again; or NULL */
    struct wpk_owner_event owner;
    enum wpk_worker_order order;
    uint32_t retry_after_s; /* RESPOND_PROBLEM; 0: not said */
};

/* Filled by a step. `arena` holds what effects point to and the state does not. It grows from step
 * to step until its owner resets it, when nothing of it is needed any more. */
struct wpk_effects {
    struct wpk_effect *items; /* owned; [count], grows: users decide how much there is to do */
    uint32_t count;
    uint32_t capacity;
    struct wpk_arena arena;
};

wpk_err wpk_effects_init(struct wpk_effects *effects);
void wpk_effects_fini(struct wpk_effects *effects);

/* `job_number_next`: of the next job; the store knows. */
wpk_err wpk_coordinator_new(uint64_t job_number_next, struct wpk_coordinator **out);
void wpk_coordinator_free(struct wpk_coordinator *coordinator);

/* Decide. Clears `out` and fills it. Cannot fail: what is wrong with an event becomes an answer. */
void wpk_coordinator_step(struct wpk_coordinator *coordinator, const struct wpk_event *event,
                          struct wpk_effects *out);

/* ---- looking; what is returned is good until the next step */

const struct wpk_job_entry *wpk_coordinator_job(const struct wpk_coordinator *coordinator,
                                                const char *id);
uint32_t wpk_coordinator_job_count(const struct wpk_coordinator *coordinator);
uint32_t wpk_coordinator_worker_count(const struct wpk_coordinator *coordinator);
const struct wpk_worker *wpk_coordinator_worker(const struct wpk_coordinator *coordinator,
                                                uint32_t index);
const struct wpk_worker *wpk_coordinator_find_worker(const struct wpk_coordinator *coordinator,
                                                     const char *name);
/* Would WPK_EVENT_WORKER_SET be carried out? `name`: a worker's, or its device's instance.
 *   errors  WPK_ENOENT no such worker; WPK_ENOSPC orders for too many are kept */
WPK_MUST_CHECK wpk_err wpk_coordinator_may_order(const struct wpk_coordinator *coordinator,
                                                 const char *name, enum wpk_worker_order order);
/* NULL when there is no such session. */
const struct wpk_worker *wpk_coordinator_find_session(const struct wpk_coordinator *coordinator,
                                                      uint64_t session);
/* For gauges: it looks at every job and every worker. */
struct wpk_coordinator_counts {
    uint32_t jobs[WPK_JOB_STATE_COUNT];
    uint32_t workers_idle;
    uint32_t workers_busy;
    uint32_t workers_draining;
    uint32_t workers_quarantined;
    uint32_t workers_outliers; /* of all these */
    uint32_t leases;
    uint32_t searches;
};
void wpk_coordinator_count(const struct wpk_coordinator *coordinator,
                           struct wpk_coordinator_counts *out);
uint32_t wpk_coordinator_search_count(const struct wpk_coordinator *coordinator);
const struct wpk_search *wpk_coordinator_search(const struct wpk_coordinator *coordinator,
                                                uint32_t index);
/* Pieces of the search's work that want a worker. */
uint32_t wpk_search_queue_depth(const struct wpk_search *search);
/* Its store cannot be written: it knows no worker, and is there to be looked at until another one
 * is made. */
void wpk_coordinator_halt(struct wpk_coordinator *coordinator);
/* Why no worker is there for this operator, in words: "no worker with kind cpu and 8 cores". False
 * when there is one, or the operator has ended; then `out` is "". */
bool wpk_coordinator_blocked(const struct wpk_coordinator *coordinator,
                             const struct wpk_job_entry *job, uint32_t op,
                             char out[WPK_REASON_MAX]);
/* The job's last state is durable: it is forgotten, if it has ended. */
void wpk_coordinator_job_stored(struct wpk_coordinator *coordinator, uint64_t number);
/* Time during which work of the search was out, until `now_ns`. */
uint64_t wpk_search_elapsed_ns(const struct wpk_search *search, uint64_t now_ns);

/* Free what a job entry owns, and the entry. */
void wpk_job_entry_free(struct wpk_job_entry *job);
/* Free the texts of `count` pieces, and the array. */
void wpk_pieces_free(struct wpk_piece *pieces, uint32_t count);
/* Free an answer that was stepped, or never will be, with what is left of it. */
void wpk_opened_free(struct wpk_opened *opened);
void wpk_asked_free(struct wpk_asked *asked);

#endif
