/* SPDX-License-Identifier: Apache-2.0 */
/* All records and states of the coordinator: this page is read first. Functions are in the headers
 * that have the records' names.
 *
 *     owner ◀── flow ◀── owner queue ◀── claim ──▶ search ──▶ asks, vendors, plain kernel, final
 *                │           │            ▲         ▲
 *                ▼           ▼            └── operator ◀── job
 *          timing class   work queue
 *                ▲           ▲
 *                └─ worker class ◀── worker ──▶ leases on a search's work
 *
 * Records point to each other, and belong to the arrays and lists of struct wpk_coordinator, at the
 * end of this page. */
#ifndef WPK_COORDINATOR_STATE_MODEL_H
#define WPK_COORDINATOR_STATE_MODEL_H

#include "common/crypto.h"
#include "coordinator/state/table.h"
#include "schema/job.h"
#include "schema/message.h"

struct wpk_effects;
struct wpk_event;

/* Sizes of texts that several records carry. */
#define WPK_JOB_ID_SIZE 18
#define WPK_JOB_TEXT_MAX 64
#define WPK_KEY_TEXT_MAX 256
#define WPK_REASON_MAX 256
#define WPK_PINS_TEXT_MAX 4096 /* of an operator's pins, with the NUL */

/* The phases of operators and searches and the states of jobs. After a restart an operator
 * starts at `waiting` again, and goes on from what was recorded:
 *
 *     waiting ──▶ searching ──▶ finals ──▶ verifying ──▶ done
 *        │            │           │            │
 *        │            └───────────┴────────────┴───────▶ failed
 *        └──▶ done (answered from history)      any ───▶ cancelled
 */

/* suffix, text */
#define WPK_PHASE_LIST(X)                                                                          \
    X(WAITING, "waiting")                                                                          \
    X(SEARCHING, "searching")                                                                      \
    X(FINALS, "finals")                                                                            \
    X(VERIFYING, "verifying")                                                                      \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")

enum wpk_phase {
#define WPK_PHASE_ENUM(name, text) WPK_PHASE_##name,
    WPK_PHASE_LIST(WPK_PHASE_ENUM)
#undef WPK_PHASE_ENUM
        WPK_PHASE_COUNT
};

/* Suffix, and that of the phase that operators show meanwhile. A search stays in OPENING until an
 * operator wants more than what is recorded; an ended one goes on likewise. The state diagram is
 * course.c's. */
#define WPK_SEARCH_PHASE_LIST(X)                                                                   \
    X(OPENING, WAITING)                                                                            \
    X(SEARCHING, SEARCHING)                                                                        \
    X(PLAIN, SEARCHING) /* the last result stands, only its plain kernel is awaited */             \
    X(FINALS, FINALS)                                                                              \
    X(VERIFYING, VERIFYING)                                                                        \
    X(STORING, VERIFYING) /* a PUT_KERNEL is under way */                                          \
    X(STORED, VERIFYING)  /* the PUT_KERNEL was answered in this step */                           \
    X(DONE, DONE)                                                                                  \
    X(FAILED, FAILED)

enum wpk_search_phase {
#define WPK_SEARCH_PHASE_ENUM(name, shown) WPK_SEARCH_PHASE_##name,
    WPK_SEARCH_PHASE_LIST(WPK_SEARCH_PHASE_ENUM)
#undef WPK_SEARCH_PHASE_ENUM
};

/* suffix, text */
#define WPK_JOB_STATE_LIST(X)                                                                      \
    X(QUEUED, "queued")                                                                            \
    X(RUNNING, "running")                                                                          \
    X(PAUSED, "paused")                                                                            \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")

enum wpk_job_state {
#define WPK_JOB_STATE_ENUM(name, text) WPK_JOB_##name,
    WPK_JOB_STATE_LIST(WPK_JOB_STATE_ENUM)
#undef WPK_JOB_STATE_ENUM
        WPK_JOB_STATE_COUNT
};

#define WPK_ADMIN_STATES_MAX 4096 /* names with an admin state */

/* suffix, text */
#define WPK_ADMIN_STATE_LIST(X)                                                                    \
    X(NONE, "none")                                                                                \
    X(DRAIN, "drain")           /* finishes its leases, and gets no more */                        \
    X(QUARANTINE, "quarantine") /* its results are refused, and it has no leases */

enum wpk_admin_state {
#define WPK_ADMIN_STATE_ENUM(name, text) WPK_ADMIN_STATE_##name,
    WPK_ADMIN_STATE_LIST(WPK_ADMIN_STATE_ENUM)
#undef WPK_ADMIN_STATE_ENUM
        WPK_ADMIN_STATE_COUNT
};

/* The admin state of a name, whether such a worker is connected or not. `name`: a worker's, or its
 * device's instance. */
struct wpk_admin_entry {
    char name[WPK_WORKER_NAME_MAX];
    enum wpk_admin_state state; /* not NONE */
    char reason[WPK_REASON_MAX];
};

#define WPK_OWNERS_MAX 4096 /* owners that are remembered */
#define WPK_OWNER_WEIGHT_MAX 1000
#define WPK_OWNER_JOBS_DEFAULT 1024

/* An owner of jobs: its weight, its quota and what it was charged. */
struct wpk_owner {
    char name[WPK_JOB_TEXT_MAX];
    uint64_t number; /* from 1 */
    uint32_t weight;
    uint32_t jobs_max;
    bool named;           /* weight and quota are its own, not the defaults */
    uint32_t job_count;   /* live jobs */
    uint64_t device_ns;   /* device time charged, without estimates */
    uint64_t virtual_ns;  /* device time by weight; for the store only: flows have their own */
    struct wpk_mark mark; /* it is to be stored */
};

#define WPK_TIMING_CLASS_TEXT_MAX                                                                  \
    (2 * WPK_DEVICE_TEXT_MAX + WPK_ENVIRONMENT_MAX + WPK_KEY_TEXT_MAX + 4)

/* A timing class: within one, times are comparable and device time is shared (fair.h). */
struct wpk_timing_class {
    char text[WPK_TIMING_CLASS_TEXT_MAX]; /* "device class\nenvironment\nproviders" */
    uint64_t virtual_ns;                  /* the largest of its worker classes'; never falls */
    struct wpk_table flows;               /* owned; struct wpk_flow by their owners' numbers */
    uint32_t use_count; /* worker classes, work queues and leases; it is freed with the last */
};

/* A flow: an owner in a timing class, with what it was charged there. */
struct wpk_flow {
    struct wpk_owner *owner;
    struct wpk_timing_class *timing; /* of the devices whose time is charged */
    uint64_t virtual_ns;             /* device time by weight, estimates included */
    uint32_t ready_count;            /* backlogged claims (claim.h); 0: the flow is inactive */
    uint64_t mark;                   /* of the last wpk_fair_settle() that counted it */
};

/* The key of a search: all that two searches must have in common to be the same; compared by its
 * hash. Arrays are filled up with zeros. */
struct wpk_search_key {
    char fingerprint[WPK_ID_MAX];
    char layouts[16];
    char device_class[2 * WPK_DEVICE_TEXT_MAX];
    char environment[WPK_ENVIRONMENT_MAX];
    int threads;
    char strategy[32];
    char options[WPK_JOB_OPTIONS_MAX]; /* of the strategy, as in schema/job.h */
    char prior[WPK_ID_MAX];            /* SHA-256; "": none */
    char pins[WPK_PINS_TEXT_MAX];      /* as in struct wpk_job_op_state */
    uint64_t seed;
    char providers[WPK_KEY_TEXT_MAX]; /* names joined by ';', first a list of our back ends */
    char space_version[16];
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* accuracy class of the answer */
    enum wpk_conditions conditions;
};

#define WPK_ATTEMPTS_MAX 3 /* leases to build it, and as many to run it; then it is abandoned */

/* The summary of a recorded trial: all that is kept of it in memory. */
struct wpk_trial_summary {
    enum wpk_outcome outcome;
    uint64_t median_ns; /* 0 unless ok */
    uint64_t min_ns;
    uint64_t mad_ns;
    uint64_t anchor_ns;
    double anchor_ratio; /* to its search's anchor; 0: not timed in turns with it */
    bool censored;
    double error_max;
    double error_tolerance;
    double of_rms;
    double times_direct; /* -1: not measured */
    uint64_t constants_bytes;
    char artifact_sha256[WPK_ID_MAX]; /* "": no artifact was kept */
};

/* The state of a work item. */
enum wpk_standing {
    WPK_STANDING_OPEN, /* waits for a worker */
    WPK_STANDING_LEASED,
    WPK_STANDING_ENDED,
};

/* The build of a candidate by a build-only worker, for the worker that runs it. */
struct wpk_built {
    char artifact_sha256[WPK_ID_MAX];
    char schedule_sha256[WPK_ID_MAX];
    char *schedule; /* owned; NULL: none was sent */
    uint64_t build_ns;
    uint32_t attempts; /* attempts that the build took */
};

#define WPK_OPEN_END UINT32_MAX /* end of a list of open asks: no ask */

/* A work item: an ask of a search, a vendor's baseline, a final, a verification, or a plain
 * kernel's candidate. The place in the search says which kind it is of. */
struct wpk_work_item {
    enum wpk_standing standing;
    uint32_t attempts;       /* leases so far, without those that were given back */
    uint64_t lost_on;        /* device_hash of the last attempt without a result; 0: none */
    struct wpk_lease *lease; /* LEASED */
    struct wpk_built *built; /* owned; NULL: not built apart from its run */
    uint32_t open_prev;      /* OPEN ask: its neighbours in the list, or WPK_OPEN_END */
    uint32_t open_next;
    bool known;                     /* the history had its result */
    char *text;                     /* candidate; of a baseline: provider; owned */
    const char *source;             /* of an ask, until it is recorded: static */
    struct wpk_trial_summary trial; /* ENDED */
};

#define WPK_BEST_MAX 16      /* asks that a search remembers, to replace rejected finalists */
#define WPK_WINDOW_MAX 65536 /* asks in the window of one search */

/* OPEN asks of a window, in the order in which they are given out. */
struct wpk_open_list {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

/* One of the best asks, with its trial in the search. */
struct wpk_best {
    uint32_t number;
    char *candidate; /* owned */
    struct wpk_trial_summary trial;
    uint64_t worker;      /* name hash of the worker that measured it; 0: unknown */
    uint64_t again_ns[3]; /* in the last heat: median, minimum, median absolute deviation */
    double again_ratio;   /* to the anchor, by that; 0: it took part in none */
};

#define WPK_ANCHORLESS_MAX 2 /* candidates leased at a time while there is no anchor */

/* A search's anchor, and the stand-in that takes its place when it is lost or fails. */
struct wpk_anchor {
    char sha256[WPK_ID_MAX]; /* the anchor: all ratios are to its time; "": none yet; never
                              * changes once it is set */
    char now[WPK_ID_MAX];    /* artifact that is timed: the anchor or its stand-in; "": none */
    double ratio;            /* time of `now` over the anchor's */
    double last_ns;          /* the anchor's time in the last trial with `now`; 0: unknown */
    uint64_t failed[WPK_BEST_MAX]; /* hashes of artifacts that failed as `now`: a ring */
    uint32_t failed_count;         /* failures so far */
};

#define WPK_REVOKED_MAX 64 /* that a search knows of its problem; the store knows all */

/* A problem's revoked implementations: hashes of shared objects' names, and of vendors'
 * providers. */
struct wpk_revoked {
    uint64_t keys[WPK_REVOKED_MAX];
    uint32_t count;
};

#define WPK_FINAL_OWN_MAX 4      /* candidates in a final: noise may have misordered them */
#define WPK_FINAL_VERIFIED_MAX 2 /* candidates verified: the second replaces a revoked first */
#define WPK_FINAL_ROUNDS_MIN 5   /* odd, so that the median is a sample */
#define WPK_FINAL_ROUNDS 15      /* at most */
#define WPK_SECOND_MS 30000      /* a verification waits so long for another worker */

/* The origin of a contender. */
enum wpk_entry_kind {
    WPK_ENTRY_OWN,    /* one of the search's best candidates */
    WPK_ENTRY_VENDOR, /* one of the search's vendors */
    WPK_ENTRY_SERVED, /* what the problem serves now, of another search */
};

/* A contender of a final or of a heat. */
struct wpk_final_entry {
    enum wpk_entry_kind kind;
    uint32_t number; /* OWN: of the ask */
    char *candidate; /* owned by the search; "" unless OWN */
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact_sha256[WPK_ID_MAX];
    /* The trial in the search; none for SERVED. A verified entry has its largest errors. */
    struct wpk_trial_summary trial;
    struct wpk_timing timing; /* in the final if `timed`, else in its trial */
    uint64_t worker;          /* name hash of the worker that timed it; 0: unknown */
    bool timed;               /* in the final: its time compares with the others' */
    bool rejected;            /* it did not verify, or was revoked */
    bool lost;                /* its artifact is: the next final is held without it */
    bool verified;            /* on fresh inputs */
    char verified_by[WPK_WORKER_NAME_MAX];
    char *schedule; /* that was verified; owned by the search; NULL: none was sent */
};

/* The plain kernel, as a work item: its candidates are tried one after the other. */
struct wpk_plain {
    struct wpk_work_item item;             /* its text is the name of the candidate */
    uint32_t number;                       /* of the candidate that is tried, from 1 */
    char verified_by[WPK_WORKER_NAME_MAX]; /* name of the worker; "": unknown */
    struct wpk_final_entry entry;          /* what wpk_plain_entry() returns */
};

#define WPK_HEAT_FIRST 32 /* results before the first heat */
#define WPK_HEAT_ROUNDS 7 /* odd, so that the median is a sample */

/* One owner's interest in a search, in one work queue. The rank (priority, job number, position) is
 * that of the first operator that it stands for. */
struct wpk_claim {
    struct wpk_search *search;
    struct wpk_owner_queue *owner_queue;
    struct wpk_claim *search_next;
    uint32_t op_count; /* operators that it stands for; it is freed with the last */
    int priority;
    uint64_t job_number;
    uint32_t position; /* of the operator in its job */
    bool ready;        /* there is work for it: it is in its owner queue's array */
    bool backlogged;   /* a worker can do it, and it is ready or its search awaits an ASK */
};

/* The claims of one owner in a work queue; `ready` are those that there is work for, by rank. */
struct wpk_owner_queue {
    struct wpk_flow *flow;
    struct wpk_work_queue *queue;
    uint32_t claim_count;     /* ready or not; it is freed with the last */
    struct wpk_claim **ready; /* owned; [ready_count] */
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t place; /* in the work queue's array of ready owner queues */
    struct wpk_owner_queue *next;
};

#define WPK_JOBS_LIVE_MAX 1024 /* queued and running */

/* The report on an operator that ended before this start of wpkd: its search is not opened. */
struct wpk_op_past {
    char *device_class; /* owned, as all of these */
    char *best;         /* best candidate, a Contender of openapi.yaml; NULL: none */
    char *baseline;     /* best vendor, a Contender; NULL: none */
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
};

/* An operator of a job. Operators that ask the same share a search. */
struct wpk_job_op_state {
    char name[WPK_JOB_TEXT_MAX];
    char fingerprint[WPK_ID_MAX];
    char family[WPK_ID_MAX];
    char layouts[16];
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    enum wpk_conditions conditions;
    char *op;                  /* canonical form; owned */
    char *binding;             /* its tensors by the job's names: JSON; owned */
    char *pins;                /* by the canonical form's names, sorted; owned; NULL: none */
    double flops;              /* of one call */
    double bytes;              /* of its inputs, constants and outputs */
    uint32_t count;            /* calls of it, by which a total budget is shared out */
    uint32_t allotted;         /* candidates, of a total budget: budget.h */
    struct wpk_search *search; /* NULL until a device was found; borrowed */
    enum wpk_phase phase;
    char reason[WPK_REASON_MAX];
    bool from_history;
    uint64_t kernel_id; /* 0: none */
    /* RESTORE: text of the timing class of the search that it had; owned; NULL: none */
    char *bound;
    struct wpk_op_past *past;      /* RESTORE: it had ended before; owned; NULL: it had not */
    struct wpk_job_entry *job;     /* its job */
    struct wpk_job_op_state *next; /* in the search's list of operators */
    struct wpk_job_op_state *prev;
    struct wpk_claim *claims[2]; /* by enum wpk_queue_stage; NULL: it is not worked on now */
};

/* A job that has not ended, or whose end is not durable. Other jobs are only in the store. */
struct wpk_job_entry {
    uint64_t number; /* in the store: the order of submission */
    char id[WPK_JOB_ID_SIZE];
    char name[WPK_JOB_TEXT_MAX];
    char owner[WPK_JOB_TEXT_MAX];
    int priority;
    char kind[16];                        /* of the device */
    char device[2 * WPK_DEVICE_TEXT_MAX]; /* device class that it is for; "": any */
    int threads;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX]; /* that its workers must have; by name */
    uint32_t label_count;
    char strategy[32];
    char options[WPK_JOB_OPTIONS_MAX]; /* of the strategy, as in schema/job.h */
    char prior[WPK_ID_MAX];            /* SHA-256; "": none */
    char *prior_text; /* owned; of a job that was submitted to this process; NULL: none */
    uint64_t seed;
    uint32_t candidates;           /* budget of each operator */
    uint32_t total;                /* of all operators together; 0: each has its own */
    uint64_t time_ns;              /* budget of each operator */
    char until[WPK_JOB_UNTIL_MAX]; /* a condition that ends it earlier: schema/job.h */
    enum wpk_job_state state;
    char reason[WPK_REASON_MAX];
    uint64_t created_wall_ns;
    uint64_t started_wall_ns;
    uint64_t finished_wall_ns;
    bool stored;                    /* its end is durable */
    bool unbound;                   /* an operator waits for a device */
    uint64_t restored_ns;           /* at the start of wpkd; 0: it was submitted */
    struct wpk_owner *owner_record; /* the owner with this name; borrowed */
    struct wpk_mark marks[WPK_JOB_MARKS];
    struct wpk_job_op_state *ops; /* owned; [op_count] */
    uint32_t op_count;
};

#define WPK_LEASES_MAX 64 /* of one worker */
/* A lease that its worker has named as running for so long has expired. A worker ends a run after
 * 30 s; the reference may take many times that. */
#define WPK_RUN_LIMIT_MS 1200000
#define WPK_FINAL_TURN_MS 30000 /* a final has so much longer for each turn of a contender */

/* A lease: this worker has this work item. Leases are in memory only (lease.h). */
struct wpk_lease {
    uint64_t number;
    struct wpk_worker *worker;
    struct wpk_search *search; /* it stays in the state while it has leases */
    wpk_work_id work;
    enum wpk_work_stage stage;
    uint64_t estimate_ns;   /* of its device time */
    uint64_t charged_ns;    /* that by the owner's weight: in the flow's virtual time */
    struct wpk_flow *flow;  /* that pays; NULL: the search had no claim */
    uint64_t named;         /* the step in which its worker named it last */
    uint64_t artifact;      /* wpk_table_hash() of what its worker uploads for it; 0: nothing yet */
    struct wpk_lease *next; /* of the worker's leases, by number */
    struct wpk_lease *prev;
};

#define WPK_OUTLIER_FACTOR 3.0
#define WPK_OUTLIER_OTHERS 2
#define WPK_OUTLIER_PROBLEMS 3
#define WPK_COMPARISONS_MAX 16 /* of a worker; the latest are remembered */

/* Times of one problem on two devices; of several comparisons, the one with the ratio nearest 1. */
struct wpk_comparison {
    uint64_t device; /* device_hash of the other worker */
    uint64_t problem;
    double ratio; /* own time over the other's */
};

/* The latest comparisons of a worker with others. */
struct wpk_comparisons {
    struct wpk_comparison items[WPK_COMPARISONS_MAX]; /* a ring */
    uint32_t count;                                   /* comparisons so far */
};

/* The stage of the work in a work queue. */
enum wpk_queue_stage {
    WPK_QUEUE_RUN, /* work that needs the device */
    WPK_QUEUE_BUILD,
    WPK_QUEUE_STAGES,
};

/* A worker class that can do the work of a work queue. */
struct wpk_link {
    struct wpk_worker_class *worker_class;
    struct wpk_work_queue *queue;
    struct wpk_link *worker_class_next;
    struct wpk_link *queue_next;
    struct wpk_link *waiting_next; /* list of the work queue: worker classes with waiting polls */
    struct wpk_link *waiting_prev;
};

/* A worker class: the workers that can do the same work (worker_class.h). */
struct wpk_worker_class {
    char *key; /* owned: the text of all that defines it */
    struct wpk_timing_class *timing;
    struct wpk_hello hello;           /* of its first worker; what defines the class is common */
    struct wpk_link *links;           /* owned: the work queues that it can serve */
    struct wpk_worker *waiting_first; /* workers whose polls wait, first come first served */
    struct wpk_worker *waiting_last;
    uint32_t worker_count;
    uint32_t available_count; /* workers that may be given work */
    uint32_t steady_count;    /* of these, at the last tick, those that were not disturbed */
    uint64_t virtual_ns; /* the largest virtual time of a flow that it served, before the charge */
    uint32_t place;      /* in the coordinator's array */
};

/* A work queue: the work that asks for the same of a worker (worker_class.h). */
struct wpk_work_queue {
    char *key; /* owned: the text of all that defines it */
    struct wpk_timing_class *timing;
    enum wpk_queue_stage stage;
    int threads;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX];
    uint32_t label_count;
    char back_ends[WPK_KEY_TEXT_MAX]; /* of a build: the list that its workers must offer */
    struct wpk_link *links;
    struct wpk_link *waiting_first;
    struct wpk_link *waiting_last;
    struct wpk_owner_queue *owner_queues; /* owned; the work queue is freed with the last */
    /* owned; [ready_count]: owner queues with a ready claim */
    struct wpk_owner_queue **ready;
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t served_count; /* linked worker classes with a worker that may be given work */
    bool served_changed;   /* served_count changed in this step from 0 or to 0 */
    uint64_t virtual_ns;   /* the largest of its worker classes' in its timing class; never falls */
    struct wpk_mark mark;  /* there may be work for a waiting poll */
    uint32_t place;        /* in the coordinator's array */
};

#define WPK_DISTURBED_SHARE 0.05  /* of its samples: with more, a worker is disturbed */
#define WPK_DISTURBED_SAMPLES 200 /* are looked at before that is said */
#define WPK_DISTURBED_MS 60000    /* then it is given another chance */

/* How often a worker's samples waited for a CPU. A worker that is disturbed only builds, while
 * another one of its worker class is not. */
struct wpk_steadiness {
    uint32_t sample_count;    /* taken lately, */
    uint32_t disturbed_count; /* of which so many waited */
    uint64_t since_ns;        /* when it became disturbed; 0: it is not */
    bool only_builds;
};

#define WPK_WORKERS_MAX 16384 /* sessions at a time */
#define WPK_LEASE_MS 20000    /* a worker that was silent for so long is lost, with its leases */
#define WPK_SLEPT_MS 5000     /* a longer gap between two ticks: the machine was suspended */
#define WPK_GONE_MS 3000      /* a worker whose connection ended may come back for so long */
#define WPK_FAILED_MS 600000  /* one that left because it failed is listed for so long */

/* A worker: one for each session. */
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
    struct wpk_comparisons *comparisons; /* owned; with other workers' times; NULL: none yet */
    bool is_outlier;                     /* worker.h */
    int throttled_count, sample_count;   /* of its last result with a time */
    struct wpk_steadiness steadiness;
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

/* The kernel that a problem serves in one accuracy class; kernel_id 0: there is none. */
struct wpk_served_kernel {
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* the class; "": that of the search which has this */
    uint64_t kernel_id;
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact_sha256[WPK_ID_MAX]; /* "": a vendor's kernel */
};

/* A search: the asks, results and phase of one operator, by one strategy, on one timing class. */
struct wpk_search {
    uint64_t id; /* in the store; 0 until opened */
    uint64_t problem_id;
    uint64_t handle; /* from 1; effects and events name the search by it */
    struct wpk_search_key key;
    char family[WPK_ID_MAX];
    char *op;                 /* the operator in whole form; owned */
    double flops;             /* of one call */
    double bytes;             /* of its inputs, constants and outputs */
    double size_log2;         /* of the space */
    struct wpk_device device; /* the space is derived from it; all 0: no worker was there yet */
    struct wpk_policy policy;
    struct wpk_accuracy accuracy; /* class of the key */
    enum wpk_search_phase phase;
    char reason[WPK_REASON_MAX];
    char failure[WPK_REASON_MAX / 2]; /* first line of the latest failed candidate's log */

    /* The window: asks told_count to ask_count - 1, ask n at n modulo the capacity. */
    struct wpk_work_item *asks; /* owned; wpk_asks_get() */
    uint32_t ask_capacity;      /* a power of two, or 0 */
    uint32_t ask_count;
    uint32_t told_count;         /* asks told to the strategy, in their order */
    struct wpk_open_list open;   /* asks to be built and run */
    struct wpk_open_list built;  /* asks to be run */
    uint32_t asked_count;        /* candidates that an ASK effect is for; 0: none is under way */
    uint32_t asked_told;         /* told_count at the ASK */
    uint32_t promised_count;     /* of these, candidates for polls that await the answer */
    struct wpk_worker *awaiting; /* workers of these polls */
    uint32_t refused_told;       /* the strategy proposes nothing until it is told more than this;
                                  * UINT32_MAX: it does */
    uint32_t flight_max; /* asks in flight when the strategy last refused; 0: it never did */
    bool exhausted;      /* the strategy has no more candidates */
    struct wpk_work_item vendors[WPK_PROVIDERS_MAX];
    uint64_t vendor_workers[WPK_PROVIDERS_MAX]; /* name hash of each one's worker; 0: unknown */
    uint32_t vendor_count;
    struct wpk_plain plain;

    uint32_t ok_count; /* ended asks */
    uint32_t failed_count;
    uint32_t known_count;                 /* of both, asks whose result the history had */
    uint32_t leased_count;                /* leases on it: it stays until they end */
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of failed asks, as far as they are known */
    /* Asks with a time and an artifact, best first; of equal artifacts the first. */
    struct wpk_best best[WPK_BEST_MAX];
    uint32_t best_count;
    struct wpk_anchor anchor;

    uint32_t candidates;             /* budget: the largest of its jobs' that go on */
    uint64_t time_ns;                /* budget: the largest of its jobs' that go on */
    uint64_t elapsed_ns;             /* time with leases, until `active_ns` */
    uint64_t active_ns;              /* it has had leases since then; 0: it has none */
    uint32_t ended_asks;             /* asks that had ended at the last result */
    uint64_t kernel_id;              /* the last result; 0: none */
    struct wpk_served_kernel served; /* by the problem in this accuracy class */
    struct wpk_revoked revoked;      /* of the problem: neither wins nor counts */
    bool measured;                   /* something was measured since it was opened */
    uint64_t cost_ns;                /* smoothed device time of its leases; 0: not known yet */

    struct wpk_job_op_state *ops; /* of jobs in the state, ended ones too: it stays for them */
    struct wpk_claim *claims;     /* owned by claim.c */
    unsigned ready;               /* stages with work: bits 1 << enum wpk_queue_stage */
    bool unstarted;               /* an operator's job is still QUEUED */
    bool ops_changed;             /* operators are to join it, its budget is to be computed again */
    char error[WPK_REASON_MAX]; /* it ends FAILED in this step, for this reason; "": it does not */
    struct wpk_mark marks[WPK_SEARCH_MARKS];
    struct wpk_search *released_next;
    uint32_t place;                  /* in the coordinator's array */
    struct wpk_search *problem_next; /* next search of the same problem */
    char key_hash[WPK_ID_MAX];

    struct wpk_final_entry entries[WPK_CONTENDERS_MAX];
    uint32_t entry_count;
    bool heat;      /* the entries and `final` are of a heat: budget.h */
    uint32_t heats; /* the next heat is due at WPK_HEAT_FIRST << heats results */
    struct wpk_work_item final;
    struct wpk_work_item verify;
    uint32_t verifying;                    /* index into entries */
    char verified_by[WPK_WORKER_NAME_MAX]; /* the last one's worker; "": it was abandoned */
    uint64_t timed_by;                     /* name hash of the worker that must not verify it */
    struct wpk_timer timer;                /* until then `timed_by` is not given it */
    /* Index in the work id of `final` and `verify`: a hash of the contenders. So a result for other
     * contenders, from before a restart or of an earlier final, is recognised. */
    uint32_t final_number;
    uint32_t verify_number;
    const struct wpk_final_entry *winner; /* of the PUT_KERNEL: in `entries`, or the plain kernel */
    bool serving;                         /* the problem is to serve the winner */
    bool plain_wins; /* the last result is the plain kernel: nothing else works */
};

/* The state of the coordinator. Besides steps, only wpk_job_stored() changes it, and the owner sets
 * `halted`. */
struct wpk_coordinator {
    struct wpk_job_entry **jobs; /* owned; [job_count], by number; some have ended */
    uint32_t job_count;
    uint32_t live_count; /* that have not ended */
    struct wpk_mark_list marked_jobs[WPK_JOB_MARKS];
    uint32_t unbound_count; /* jobs with an operator that waits for a device */
    bool bind_again;        /* the next tick tries to bind them */
    bool jobs_stored;       /* the end of a job is durable: it may be forgotten */
    struct wpk_table jobs_by_id;
    struct wpk_table jobs_by_number;
    uint64_t job_number_next;

    struct wpk_search **searches; /* owned; [search_count], in no order */
    uint32_t search_count;
    uint32_t search_capacity;
    struct wpk_table searches_by_id; /* searches that are open */
    struct wpk_table searches_by_handle;
    struct wpk_table searches_by_key;
    struct wpk_table searches_by_problem; /* the first search of each problem */
    uint64_t handle_next;
    struct wpk_mark_list marked_searches[WPK_SEARCH_MARKS];
    struct wpk_search *released; /* owned; effects of the last step may point to them */
    struct wpk_timers search_timers;

    struct wpk_worker **workers; /* owned; [worker_count], in no order */
    uint32_t worker_count;
    struct wpk_table workers_by_session;
    struct wpk_table workers_by_name;
    struct wpk_table workers_by_peer; /* the first worker of each connection */
    struct wpk_timers worker_timers;
    struct wpk_worker *polled;     /* the worker whose poll came in this step; NULL: none */
    struct wpk_table admin_states; /* owned; struct wpk_admin_entry by its name */
    uint32_t lease_count;
    uint64_t lease_next;            /* number of the next lease */
    struct wpk_lease *leases_spare; /* owned; free ones */

    struct wpk_table timing_classes;          /* owned; struct wpk_timing_class by its text */
    struct wpk_worker_class **worker_classes; /* owned; [worker_class_count] */
    uint32_t worker_class_count;
    uint32_t worker_class_capacity;
    struct wpk_table worker_classes_by_key;
    struct wpk_work_queue **queues; /* owned; [queue_count]; work queues */
    uint32_t queue_count;
    uint32_t queue_capacity;
    struct wpk_table queues_by_key;
    struct wpk_mark_list marked_queues; /* work queues with work and a waiting poll */
    bool served_changed;                /* of a work queue, in this step */
    bool unserved; /* a work queue lost its last available worker since the last tick */

    struct wpk_owner **owners; /* owned; [owner_count] */
    uint32_t owner_count;
    uint32_t owner_capacity;
    struct wpk_table owners_by_name;
    struct wpk_mark_list marked_owners; /* to be stored */
    uint32_t owner_weight;              /* of owners that are not named; so is the next */
    uint32_t owner_jobs_max;
    uint64_t mark; /* wpk_fair_settle() counts an owner once by it */

    bool draining;      /* wpkd is about to end: nothing is leased */
    bool halted;        /* the store cannot be written: the state, without workers, is only read */
    bool builds_held;   /* artifacts have no room: nothing is leased to be built */
    uint64_t ticked_ns; /* time of the last tick; 0: none yet */
    uint64_t stored_ns; /* when counters were stored last */
    uint64_t step;      /* number of the last step */
    /* Of the step under way: */
    const struct wpk_event *event;
    uint32_t opened_count; /* its OPEN_SEARCH effects */
    struct wpk_effects *effects;
};

const char *wpk_phase_name(enum wpk_phase phase);
const char *wpk_job_state_name(enum wpk_job_state state);
/* True if the phase is done, failed or cancelled. */
bool wpk_phase_ended(enum wpk_phase phase);
/* The phase that a search's operators show. */
enum wpk_phase wpk_search_phase_shown(enum wpk_search_phase phase);

/* True if candidate `a` of a search is faster than `b`: by their ratios to the anchor, because
 * times of different moments do not compare; by their times if one has no ratio. */
bool wpk_trial_is_faster(const struct wpk_trial_summary *a, const struct wpk_trial_summary *b);
/* Put the trial in its place among at most WPK_BEST_MAX, the fastest first, and return it, of which
 * the caller fills in the rest; NULL: it is none of them, or another has the same code. */
struct wpk_best *wpk_best_put(struct wpk_best *best, uint32_t *count, struct wpk_accuracy accuracy,
                              const struct wpk_trial_summary *trial);
/* True if the trial was stopped early or is outside the accuracy class: its time says little. */
bool wpk_trial_raced_out(struct wpk_accuracy accuracy, const struct wpk_trial_summary *trial);

/* The summary of a record; times and artifact only of outcome ok. */
struct wpk_trial_summary wpk_trial_summarize(const struct wpk_record *record);
/* A copy for an effect, with this text, in the effects' arena. */
const struct wpk_work_item *wpk_work_item_copy(struct wpk_coordinator *c,
                                               const struct wpk_work_item *item, const char *text);
void wpk_built_free(struct wpk_built *built);
/* Free the texts of `count` work items, and the array. */
void wpk_work_items_free(struct wpk_work_item *items, uint32_t count);

#endif
