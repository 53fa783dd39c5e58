/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinator knows: jobs, searches, workers. Changed by coordinator.c and the files it
 * is made of, read by api_json.c.
 *
 *     job ─▶ its ops ─▶ search (shared by jobs that ask the same) ─▶ asks, vendors, kernel
 *
 * Of a search's asks only the window between the first that was not told to the strategy and the
 * last that was asked is here; of those before it, their counts and the best ones.
 *
 *     worker ─▶ holds leases on a search's work
 *
 * An operator's phases; whatever was recorded survives a restart, from which it goes on:
 *
 *     waiting ──▶ searching ──▶ finals ──▶ verifying ──▶ done
 *        │            │           │            │
 *        │            └───────────┴────────────┴───────▶ failed
 *        └──▶ done (answered from history)      any ───▶ cancelled
 */
#ifndef WPK_COORDINATOR_STATE_STATE_H
#define WPK_COORDINATOR_STATE_STATE_H

#include "common/crypto.h"
#include "coordinator/state/timer.h"
#include "schema/message.h"

#define WPK_JOB_ID_SIZE 18
#define WPK_JOB_TEXT_MAX 64
#define WPK_KEY_TEXT_MAX 256
#define WPK_REASON_MAX 256
#define WPK_PARAMETERS_MAX 4096  /* of an operator's pins, with the NUL */
#define WPK_FINAL_OWN_MAX 4      /* of our own in a final: noise may have misordered them */
#define WPK_FINAL_VERIFIED_MAX 2 /* of these are verified: the second follows if one is revoked */
#define WPK_BEST_MAX 16       /* that a search remembers: who follows when finalists are rejected */
#define WPK_WINDOW_MAX 65536  /* asks under way of one search */
#define WPK_FINAL_ROUNDS 15   /* odd, so that the median is a sample */
#define WPK_REVOKED_MAX 64    /* of a problem, that its searches know; the store knows all */
#define WPK_ATTEMPTS_MAX 3    /* leases of one piece of work before it is abandoned */
#define WPK_WORKERS_MAX 16384 /* sessions that live */
#define WPK_LEASES_MAX 64     /* of one worker */
#define WPK_LEASE_MS 20000    /* after the last word of its worker; what it names is renewed */
/* A lease that its worker names as the one that runs, for so long, has expired: a run has 30 s in
 * its worker, and the reference may take many times that. A final has longer, for each turn. */
#define WPK_RUN_LIMIT_MS 1200000
#define WPK_FINAL_TURN_MS 30000
#define WPK_SLEPT_MS 5000     /* between two ticks: the machine was suspended, not idle */
#define WPK_GONE_MS 3000      /* a worker whose connection ended may come back that long */
#define WPK_RETURN_MS 30000   /* after a start: an operator waits for the device it had */
#define WPK_SECOND_MS 30000   /* a winner waits for a worker other than the one that timed it */

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

const char *wpk_phase_name(enum wpk_phase phase);
const char *wpk_job_state_name(enum wpk_job_state state);
bool wpk_phase_ended(enum wpk_phase phase);

/* What a recorded trial comes to; all that is kept of it in memory. */
struct wpk_trial_summary {
    enum wpk_outcome outcome;
    uint64_t median_ns; /* 0 unless ok */
    uint64_t min_ns;
    uint64_t mad_ns;
    uint64_t anchor_ns;
    double anchor_ratio; /* to its search's anchor; 0: it was not timed in turns with that */
    bool censored;
    double error_max;
    double error_tolerance;
    double of_rms;
    double times_direct; /* -1: not measured */
    uint64_t constants_bytes;
    char artifact_sha256[WPK_ID_MAX]; /* "" when none was kept */
};

/* Which of two candidates of a search is faster: times of different moments do not compare, ratios
 * to the anchor do. */
bool wpk_trial_is_faster(const struct wpk_trial_summary *a, const struct wpk_trial_summary *b);
/* Was it stopped early, or is it outside the class? Its time says little either way. */
bool wpk_trial_raced_out(struct wpk_accuracy accuracy, const struct wpk_trial_summary *trial);

/* Where a piece of work stands. */
enum wpk_standing {
    WPK_STANDING_OPEN, /* wants a worker */
    WPK_STANDING_LEASED,
    WPK_STANDING_ENDED,
};

/* What a worker that only builds has made of a candidate, for one that runs it. */
struct wpk_built {
    char artifact_sha256[WPK_ID_MAX];
    char schedule_sha256[WPK_ID_MAX];
    char *schedule; /* owned; NULL: none was sent */
    uint64_t build_ns;
    uint32_t attempts; /* that building it took */
};

#define WPK_OPEN_END UINT32_MAX /* no ask */

/* A piece of work: an ask of the search, a vendor's baseline, a final or a verification. */
struct wpk_piece {
    enum wpk_standing standing;
    uint32_t attempts;       /* leases given out so far, but for those given back */
    uint64_t lost_on;        /* device_hash of whose attempt came to nothing last; 0: none */
    struct wpk_lease *lease; /* LEASED */
    struct wpk_built *built; /* owned; NULL: it was not built apart from its run */
    uint32_t open_prev;      /* OPEN, of an ask: its neighbours in the list; WPK_OPEN_END */
    uint32_t open_next;
    bool known;                     /* history had the result */
    char *text;                     /* candidate; for a vendor its provider; owned */
    struct wpk_trial_summary trial; /* ENDED */
};

/* Asks of a window that are OPEN, in the order in which they are given out. */
struct wpk_open_list {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

/* An ask that did well, with the time that it got in the search. */
struct wpk_best {
    uint32_t number;
    char *candidate; /* owned */
    struct wpk_trial_summary trial;
    uint64_t worker; /* wpk_table_hash() of the name of who measured it; 0: not known any more */
};

/* What an operator ordered of a worker, by its name. */
/* suffix, text */
#define WPK_WORKER_ORDER_LIST(X)                                                                   \
    X(NONE, "none")                                                                                \
    X(DRAIN, "drain")           /* finishes what it has, and gets nothing */                       \
    X(QUARANTINE, "quarantine") /* not believed any more: its results are refused */

enum wpk_worker_order {
#define WPK_WORKER_ORDER_ENUM(name, text) WPK_WORKER_ORDER_##name,
    WPK_WORKER_ORDER_LIST(WPK_WORKER_ORDER_ENUM)
#undef WPK_WORKER_ORDER_ENUM
        WPK_WORKER_ORDER_COUNT
};

const char *wpk_worker_order_name(enum wpk_worker_order order);
/*   errors  WPK_ENOENT no such order */
WPK_MUST_CHECK wpk_err wpk_worker_order_parse(const char *text, enum wpk_worker_order *out);

/* What makes two searches the same. Fixed arrays, zero-filled: compared field by field. */
struct wpk_search_key {
    char fingerprint[WPK_ID_MAX];
    char layouts[16];
    char device_class[2 * WPK_DEVICE_TEXT_MAX];
    char environment[WPK_ENVIRONMENT_MAX];
    int threads;
    char strategy[32];
    char parameters[WPK_PARAMETERS_MAX]; /* pins */
    uint64_t seed;
    char providers[WPK_KEY_TEXT_MAX]; /* names joined by ';', our own first */
    char space_version[16];
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* class that an answer has to fit */
    enum wpk_conditions conditions;
};

enum wpk_entry_kind {
    WPK_ENTRY_OWN,    /* one of the search's best */
    WPK_ENTRY_VENDOR, /* of the search */
    WPK_ENTRY_SERVED, /* the problem's kernel so far, of another search */
};

struct wpk_final_entry {
    enum wpk_entry_kind kind;
    uint32_t number; /* OWN: of the ask */
    char *candidate; /* owned by the search; "" but for OWN */
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact_sha256[WPK_ID_MAX];
    /* What was known before, none of SERVED; of a verified one with its largest errors. */
    struct wpk_trial_summary trial;
    struct wpk_timing timing; /* after the final */
    uint64_t worker;          /* hash of the name of who took that time; 0: not known */
    bool timed;               /* in the final: its time compares with the others' */
    bool rejected;            /* did not verify */
    bool verified;            /* on fresh inputs: */
    char verified_by[WPK_WORKER_NAME_MAX];
    char *schedule; /* as it was verified; owned by the search; NULL: none was sent */
};

/* What was revoked of a problem: shared objects, and vendors' kernels, as hashes of their names. */
struct wpk_revoked {
    uint64_t keys[WPK_REVOKED_MAX];
    uint32_t count;
};

/* What candidates are timed in turns with: anchor.c. */
struct wpk_anchor {
    char sha256[WPK_ID_MAX]; /* all ratios are to this artifact's time; "": none yet, once set it
                              * stays */
    char now[WPK_ID_MAX];    /* what is timed: itself, or its stand-in; "": none now */
    double ratio;            /* time of `now` over the anchor's */
    double last_ns;          /* the anchor's, by the last that was timed with it; 0: not known */
    uint64_t failed[WPK_BEST_MAX]; /* hashes of what failed beside a candidate: a ring */
    uint32_t failed_count;         /* so far */
};

/* The plain kernel of a search's operator, which runs where nothing else does: plain.c. */
struct wpk_plain {
    struct wpk_piece piece;                /* its text is the candidate's name */
    uint32_t number;                       /* of the candidate that is tried, from 1 */
    char verified_by[WPK_WORKER_NAME_MAX]; /* the worker */
    struct wpk_final_entry entry;          /* what wpk_plain_entry gives out */
};

struct wpk_search {
    uint64_t id; /* in the store; 0 until opened */
    uint64_t problem_id;
    uint64_t handle; /* of this struct, from 1: what effects and events name */
    struct wpk_search_key key;
    char family[WPK_ID_MAX];
    char *op; /* whole form; owned */
    double flops;
    double size_log2;         /* of the space */
    struct wpk_device device; /* of its class's first worker: the space is derived from it */
    struct wpk_policy policy;
    struct wpk_accuracy accuracy; /* of the key */
    enum wpk_phase phase;         /* WAITING: being opened */
    char reason[WPK_REASON_MAX];
    char failure[WPK_REASON_MAX / 2]; /* what the latest failed candidate's log begins with */

    /* Asks told_count to ask_count - 1, ask n at n modulo the capacity: wpk_search_ask(). */
    struct wpk_piece *asks; /* owned */
    uint32_t ask_capacity;  /* a power of two, or 0 */
    uint32_t ask_count;
    uint32_t told_count;        /* asks told to the strategy: all before it have ended */
    struct wpk_open_list open;  /* to be built and run */
    struct wpk_open_list built; /* to be run */
    bool asking;                /* an ASK effect is under way: */
    uint32_t asked_told;        /* told_count then; */
    uint32_t asked_count;       /* for so many, */
    uint32_t promised_count;    /* of which so many are for polls that wait for them: */
    struct wpk_worker *awaiting;
    bool refused; /* the strategy wants to be told more first */
    bool exhausted;
    struct wpk_piece vendors[WPK_PROVIDERS_MAX];
    uint64_t vendor_workers[WPK_PROVIDERS_MAX]; /* hash of the name of who timed it; 0: not known */
    uint32_t vendor_count;
    struct wpk_plain plain;

    uint32_t ok_count; /* of the ended asks */
    uint32_t failed_count;
    uint32_t known_count;
    uint32_t leased_count;                /* pieces of any kind out now: it stays until they end */
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of the failed ones, as far as it is known */
    /* With a time and an artifact, best first; of equal artifacts the first. */
    struct wpk_best best[WPK_BEST_MAX];
    uint32_t best_count;
    struct wpk_anchor anchor;

    uint32_t candidates;       /* budget: the largest of its jobs' */
    uint64_t time_ns;          /* budget likewise */
    uint64_t elapsed_ns;       /* with work out, until `active_ns` */
    uint64_t active_ns;        /* work is out since then; 0: none is */
    uint32_t ended_asks;       /* asks of the last result */
    uint64_t kernel_id;        /* last result; 0: none */
    uint64_t served_kernel_id; /* the problem's; 0: none */
    char served_provider[WPK_PROVIDER_NAME_MAX];
    char served_artifact[WPK_ID_MAX];
    struct wpk_revoked revoked; /* neither wins nor counts */
    bool measured;              /* something was measured since it was opened */
    uint64_t cost_ns;           /* device time of a piece of its work, smoothed; 0: not known yet */

    struct wpk_job_op_state *ops; /* of live jobs, those that have ended too: it stays for them */
    struct wpk_stake *stakes;     /* of the owners that it is worked on for; owned by group.c */
    unsigned ready;               /* stages that there is work for: bits 1 << enum wpk_pool_stage */
    bool unstarted;               /* an operator's job is still QUEUED */
    bool broken;                  /* the store has trouble with it: FAILED, and never opened */
    bool closing;                 /* in the list of those that may be freed */
    bool dirty;                   /* in the list of those whose counters are to be stored */
    uint32_t place;               /* in the coordinator's array */
    struct wpk_search *problem_next; /* of the same problem */
    char key_hash[WPK_ID_MAX];

    struct wpk_final_entry entries[WPK_CONTENDERS_MAX];
    uint32_t entry_count;
    bool outdated; /* one of them is lost: the next final is held without it */
    struct wpk_piece final;
    struct wpk_piece verify;
    uint32_t verifying;                    /* index into entries */
    char verified_by[WPK_WORKER_NAME_MAX]; /* who tried the last one; "": it was abandoned */
    uint64_t timed_by;                     /* hash of the name of who is not to verify it, */
    struct wpk_timer timer;                /* until then */
    /* What a work id says of them: made of who takes part. A result of other contenders, from
     * before a restart or from a round before, is not one of these. */
    uint32_t final_number;
    uint32_t verify_number;
    bool concluding;                      /* a PUT_KERNEL is under way */
    bool serving;                         /* its kernel becomes the one that the problem serves */
    const struct wpk_final_entry *winner; /* of that kernel: of `entries`, or the plain kernel's */
    bool plain_wins; /* the last result is the plain kernel: nothing else works */
    bool plain_only; /* SEARCHING: the last result answers all who wait, but for its plain kernel */
};

/* What is said of an operator that ended before this wpkd was started: its search stays closed. */
struct wpk_op_past {
    char *device_class; /* owned, as all of these */
    char *best;         /* of our own, a Contender of openapi.yaml; NULL: none */
    char *baseline;     /* likewise */
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
};

struct wpk_job_op_state {
    char name[WPK_JOB_TEXT_MAX];
    char fingerprint[WPK_ID_MAX];
    char family[WPK_ID_MAX];
    char layouts[16];
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    enum wpk_conditions conditions;
    char *op;         /* canonical form; owned */
    char *binding;    /* its tensors by the asker's names: JSON; owned */
    char *parameters; /* pins in the canonical form's names, sorted; owned; NULL: none */
    double flops;
    struct wpk_search *search; /* NULL until a device was found; borrowed */
    enum wpk_phase phase;
    char reason[WPK_REASON_MAX];
    bool from_history;
    uint64_t kernel_id; /* 0: none */
    /* RESTORE: wpk_class_text() of the search that it had; owned; NULL: none */
    char *bound;
    struct wpk_op_past *past;      /* RESTORE: had ended; owned; NULL: its search says it */
    struct wpk_job_entry *job;     /* that it is of */
    struct wpk_job_op_state *next; /* of the search's */
    struct wpk_job_op_state *prev;
    struct wpk_stake *stakes[2]; /* it is worked on: by stage; NULL: it is not, now */
};

/* A job that has not ended, or whose end is not durable; what has ended lives in the store. */
struct wpk_job_entry {
    uint64_t number; /* in the store: the order of submission */
    char id[WPK_JOB_ID_SIZE];
    char name[WPK_JOB_TEXT_MAX];
    char owner[WPK_JOB_TEXT_MAX];
    int priority;
    char kind[16]; /* of the device */
    int threads;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX]; /* that its workers have; by name */
    uint32_t label_count;
    char strategy[32];
    uint64_t seed;
    uint32_t candidates; /* budget of each operator */
    uint64_t time_ns;    /* budget of each operator */
    enum wpk_job_state state;
    char reason[WPK_REASON_MAX];
    uint64_t created_wall_ns;
    uint64_t started_wall_ns;
    uint64_t finished_wall_ns;
    bool stored;                  /* its end is durable */
    bool unbound;                 /* an operator waits for a device */
    uint64_t restored_ns;         /* at the start of wpkd; 0: it was submitted */
    struct wpk_owner *account;    /* its owner's */
    struct wpk_job_op_state *ops; /* owned; [op_count] */
    uint32_t op_count;
};

struct wpk_worker {
    uint64_t session;
    struct wpk_hello hello; /* without the token */
    bool is_local;          /* it said hello at a local socket, whose file says who may */
    uint8_t token_hash[WPK_SHA256_SIZE]; /* of the token that let it in; not of a local one */
    char device_class[2 * WPK_DEVICE_TEXT_MAX];
    uint64_t name_hash;
    uint64_t device_hash; /* of its device's instance: the same whatever name it has next */
    enum wpk_worker_order order;
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
    bool available;          /* may be given work: counted in its group */
    struct wpk_group *group; /* of workers that can do the same */
    /* Those whose poll waits: of the group; or of the search that is awaited, in no order. */
    struct wpk_worker *next;
    struct wpk_worker *prev;
    bool queued;                  /* in the group's list */
    struct wpk_worker *peer_next; /* on the same connection */
    uint32_t place;               /* in the coordinator's array */
    struct wpk_timer timer;       /* its poll is to be answered, or it may be lost */
};

/* Ask `number` of the search; NULL when it is not in its window. */
struct wpk_piece *wpk_search_ask(const struct wpk_search *search, uint32_t number);

#endif
