/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator: one wpkd, its users and its workers in one thread, under a fake clock. Future
 * events wait in a queue ordered by time. Everything random comes from the seed, so a seed always
 * gives the same run.
 *
 *      users ──requests──▶ ┌──────┐ ◀──frames── workers (2 to 40)
 *                          │ wpkd │                connections drop, delay, double, reorder
 *      disk ◀──commits──── └──────┘ ──replies──▶
 *
 * Faults while there is trouble: frames are lost or late. Workers die; hang and come back with the
 * work they held; are stuck with what they run; answer twice; answer for leases that have ended;
 * give work back and leave; change their device; cannot get artifacts of others; have anchors that
 * crash. wpkd dies before, in or after a commit. The disk is full. Strategies answer late. The wall
 * clock is set. Users submit, pause and cancel, exceed their quotas, ask for labels that some
 * workers or none have, revoke kernels and roll back. The outcome of a candidate is a function of
 * its text, and so are its time in a final and its verification; only the times of a skewed worker
 * differ. A violation ends the process and prints the seed (wpk_sim_fail). sim_check.c and
 * sim_history.c have the checks, sim_served.c those of served kernels, sim_fair.c those of device
 * time. */
#ifndef WPK_TESTS_SIM_SIM_H
#define WPK_TESTS_SIM_SIM_H

#include "common/crypto.h"
#include "common/rng.h"
#include "coordinator/effects/executor.h"
#include "tests/clock_fake.h"
#include "tests/sim/sim_queue.h"

#define WPK_SIM_WORKERS_MAX 40
#define WPK_SIM_JOBS_MAX 32
#define WPK_SIM_HELD_MAX 16
#define WPK_SIM_LEASES_MAX 4096
#define WPK_SIM_KERNELS_MAX 512
#define WPK_SIM_MEMORY 8 /* results that a worker remembers to have sent */

struct wpk_sim_options {
    uint64_t seed;
    int worker_count;
    int class_count; /* of devices */
    double trouble;  /* 0: no faults; 1: as many as wpkd has to survive */
    bool liars;      /* workers change their device */
    bool mixed;      /* some workers only build, some only run */
    bool late;       /* strategies answer late */
    bool jumps;      /* the wall clock jumps by hours */
    bool rules;      /* owners have weights and quotas: see sim_wpkd.c */
    bool skewed;     /* all times of the first worker are multiplied by `skew` */
    double skew;
    uint64_t run_ms; /* time that every work item takes; 0: drawn */
    bool verbose;    /* print events to standard output */
};

/* One work item that a worker holds. */
struct wpk_sim_holding {
    struct wpk_work work; /* its pointers are invalid; the fields below keep copies */
    char *candidate;      /* owned */
    char artifacts[WPK_CONTENDERS_MAX][WPK_ID_MAX]; /* needed to run it; "": a vendor's */
    uint32_t artifact_count;
    uint32_t fetched;                      /* artifacts that the worker has fetched */
    uint64_t final_ns[WPK_CONTENDERS_MAX]; /* of a final's contenders */
    char anchor[WPK_ID_MAX];               /* artifact of its anchor; "": none */
    uint64_t anchor_ns;
    bool slow; /* the machine is in the slower of its two states, so every time is longer */
    bool done;
    bool lost;          /* an artifact that it needs cannot be fetched: it was not tried */
    bool anchor_failed; /* its anchor crashed beside it */
    bool overtaken;     /* another worker reported it built, and that artifact was lost */
    bool uploaded;
};

/* A worker. When it dies, everything in this struct is lost. */
struct wpk_sim_worker {
    int index;
    int life;
    unsigned roles;
    int device;    /* device class that its hello names */
    uint32_t peer; /* number of its connection, new in each life; 0: the worker is dead */
    uint64_t session;
    bool named;    /* a poll of this session named the work it holds, and was answered */
    uint64_t wake; /* number of the event that wakes it; other wakes are stale */
    uint64_t hung_until_ns;
    /* The run of the first work item that is not done ends then; 0: not begun. */
    uint64_t run_until_ns;
    uint64_t rest_until_ns; /* wpkd told it to come again then */
    uint64_t excused_ns;    /* until then, others may get the work that it holds */
    struct wpk_sim_holding held[WPK_SIM_HELD_MAX];
    uint32_t held_count;
    struct wpk_sim_holding sent[WPK_SIM_MEMORY]; /* a ring of acknowledged work items */
    uint32_t sent_count;
    bool leaving;
    bool awaits; /* it waits for the answer to `asked` */
    enum wpk_message_kind asked;
    uint32_t asked_index;  /* of the held work item whose artifact `asked` is about */
    uint32_t asked_number; /* number of the request */
    uint64_t asked_ns;
    uint64_t polled_ns;
};

/* The simulator's observations of an ask. */
struct wpk_sim_work_item {
    uint64_t key; /* search and number; 0: the entry is free */
    uint32_t executions;
    bool acknowledged; /* a worker was told that its result is recorded */
};

/* The results that a request reports, for the check of its answer. */
struct wpk_sim_request {
    wpk_work_id *ids; /* owned */
    bool *built;      /* owned; the result is only a successful build, or was not tried */
    uint32_t count;
};

struct wpk_sim_job {
    bool submitted;
    bool accepted; /* the user has the answer */
    bool hopeless; /* no worker has the label that the job wants */
    uint32_t candidates;
    uint32_t seconds;
    char id[WPK_JOB_ID_SIZE]; /* once accepted */
};

/* A kernel, as the commits so far describe it. */
struct wpk_sim_kernel {
    int64_t id;
    int64_t problem;
    int64_t served_at;
    bool served;
    int order;        /* rank among all kernels by when it was first served; 0: never served */
    bool timed;       /* a final timed it when it was made */
    bool rolled_back; /* its problem was rolled back at some time */
    uint64_t ns;      /* for wpk_sim_check_kernels(); 0: not compared */
};

struct wpk_sim {
    struct wpk_sim_options options;
    struct wpk_rng rng;
    double trouble; /* the current value */
    char directory[64];
    struct wpk_clock_fake clock;
    uint64_t began_ns;
    struct wpk_sim_queue queue;

    struct wpk_store *store; /* NULL: wpkd does not run */
    struct wpk_index *index;
    struct wpk_executor *executor;
    uint64_t life;               /* number of wpkd's run; ticks and turns of others are stale */
    struct wpk_sim_event *inbox; /* owned; [inbox_count]: events for the next turn */
    uint32_t inbox_count;
    uint32_t inbox_capacity;
    bool turn_set;
    bool committing;       /* output that leaves now must be durable */
    uint64_t disk_full_ns; /* the disk is full until then */
    uint64_t late_ns;      /* strategies do not answer until then */
    bool degraded;         /* a commit has failed, and none has succeeded since */

    struct wpk_sim_worker workers[WPK_SIM_WORKERS_MAX];
    int worker_count;
    bool resting; /* workers take no turns: they send nothing */
    uint32_t peer_last;
    struct wpk_sim_request *requests; /* owned; [request_count], by number */
    uint32_t request_count;
    uint32_t request_capacity;
    struct wpk_sim_work_item *items; /* owned; a hash table */

    struct wpk_sim_job jobs[WPK_SIM_JOBS_MAX]; /* named n0, n1, ...; [job_count] */
    int job_count;
    const char *owner; /* of the current request over HTTP */
    uint64_t http_last;
    int responses;
    int refusals; /* of jobs, for their owner's quota */
    int revoked;  /* kernels */
    int rolled_back;
    struct wpk_sim_kernel kernels[WPK_SIM_KERNELS_MAX];
    int kernel_count;
    int served_last; /* the last `order` */

    char leases[WPK_SIM_LEASES_MAX]; /* the owners of the first leases of trials */
    int lease_count;
    int executions; /* runs of trials, repeated ones included */
    int crashes;    /* of wpkd */
    int deaths;     /* of workers; hangs count, too */
    int commits;
    bool found;  /* the skewed worker was named an outlier */
    bool blamed; /* a work item had its last attempt: it may be abandoned */
};

void wpk_sim_init(struct wpk_sim *sim, const struct wpk_sim_options *options);
void wpk_sim_fini(struct wpk_sim *sim);

/* Run for that much simulated time. */
void wpk_sim_run(struct wpk_sim *sim, uint64_t ms);
/* End the trouble: hung workers go on, dead ones come back. */
void wpk_sim_calm(struct wpk_sim *sim);
/* Run until no job is left and no worker is stuck; false if a job is left after `hours`. */
bool wpk_sim_finish(struct wpk_sim *sim, int hours);

/* Others may get what the worker holds until then; an excuse is never shortened. */
void wpk_sim_excuse(struct wpk_sim_worker *worker, uint64_t until_ns);

/* Print an event if options.verbose. */
void wpk_sim_say(const struct wpk_sim *sim, const char *format, ...) WPK_PRINTF(2, 3);
/* Print a violation with the seed, and end the process. */
void wpk_sim_fail(const struct wpk_sim *sim, const char *format, ...) WPK_PRINTF(2, 3)
    __attribute__((noreturn));
#define WPK_SIM_CHECK(sim, condition, ...)                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            wpk_sim_fail(sim, __VA_ARGS__);                                                        \
        }                                                                                          \
    } while (0)

/* ---- sim_wpkd.c */

void wpk_sim_wpkd_start(struct wpk_sim *sim);
/* Kill wpkd as kill -9 would: what was not committed is lost. It starts again after `ms`. */
void wpk_sim_wpkd_crash(struct wpk_sim *sim, uint64_t ms);
void wpk_sim_wpkd_stop(struct wpk_sim *sim);
/* Handle the inbox and commit. */
void wpk_sim_wpkd_turn(struct wpk_sim *sim);
void wpk_sim_wpkd_tick(struct wpk_sim *sim);
/* Post a user's request at once. `id`: it submits job n<id - 1>; 0: it is another request. */
void wpk_sim_post(struct wpk_sim *sim, uint64_t id, const char *path, const char *body);
const struct wpk_coordinator *wpk_sim_coordinator(const struct wpk_sim *sim);
bool wpk_sim_is_live(const struct wpk_sim *sim);

/* ---- sim_net.c */

/* Send a frame to wpkd, or to a worker; `data` is copied. */
void wpk_sim_net_to_wpkd(struct wpk_sim *sim, struct wpk_sim_worker *worker, const void *data,
                         size_t size);
void wpk_sim_net_to_worker(struct wpk_sim *sim, const struct wpk_net_address *address,
                           const void *data, size_t size);
/* End the connection and tell wpkd. */
void wpk_sim_net_cut(struct wpk_sim *sim, uint32_t peer);
void wpk_sim_net_arrive(struct wpk_sim *sim, struct wpk_sim_event *event);

/* ---- sim_worker.c */

void wpk_sim_worker_start(struct wpk_sim *sim, int index);
void wpk_sim_worker_turn(struct wpk_sim *sim, struct wpk_sim_worker *worker);
void wpk_sim_worker_receive(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                            const struct wpk_sim_event *event);
/* Kill the worker as kill -9 would. Another one takes its place after `ms`. */
void wpk_sim_worker_die(struct wpk_sim *sim, int index, uint64_t ms);
void wpk_sim_worker_wake(struct wpk_sim *sim, struct wpk_sim_worker *worker, uint64_t at_ns);
void wpk_sim_worker_fini(struct wpk_sim_worker *worker);
/* Let the worker's run take `s` seconds; it goes on speaking to wpkd. */
void wpk_sim_worker_stick(struct wpk_sim *sim, struct wpk_sim_worker *worker, uint64_t s);

/* ---- sim_truth.c: the result of a candidate, a function of its text */

/* The candidate's time in ns; 0: it fails. */
uint64_t wpk_sim_trial_ns(const char *candidate);
/* The contender's time in every final. */
uint64_t wpk_sim_final_ns(const char *provider, const char *artifact);
/* The artifact's time in the search. */
uint64_t wpk_sim_artifact_ns(const char *artifact);
/* True if the candidate passes its verification. */
bool wpk_sim_verifies(const char *candidate);
/* The hash of a candidate's artifact; the candidate's text stands for the code. */
void wpk_sim_artifact(const char *candidate, char out[WPK_SHA256_HEX_SIZE]);
/* Fill the result of a work item; all its times are multiplied by `skew`. */
void wpk_sim_fill_result(const struct wpk_sim_holding *held, double skew,
                         struct wpk_result *result);

/* ---- sim_plan.c: actions of users */

/* Draw the actions until the trouble ends; return when that is, in ms. */
uint64_t wpk_sim_plan(struct wpk_sim *sim);
void wpk_sim_act(struct wpk_sim *sim, int action);
void wpk_sim_submit(struct wpk_sim *sim, const char *job);
void wpk_sim_cancel(struct wpk_sim *sim, const char *id);
/* The value of a worker's label, which jobs may ask for: "a" or "b". */
const char *wpk_sim_lab(const struct wpk_sim *sim, int worker);
/* Resume every job and worker; cancel jobs that no worker can do. */
void wpk_sim_resume_all(struct wpk_sim *sim);

/* ---- sim_check.c: invariants at all times */

struct wpk_sim_work_item *wpk_sim_find_work_item(struct wpk_sim *sim, uint64_t search,
                                                 uint32_t number);
/* Check that the result is recorded; check that the candidate was asked. */
void wpk_sim_check_recorded(struct wpk_sim *sim, wpk_work_id id);
void wpk_sim_check_asked(struct wpk_sim *sim, const struct wpk_work *work);
/* Check after every commit: workers and searches count the same leases, owners keep to their
 * quotas, and a job that no worker can do has a reason. */
void wpk_sim_check_state(struct wpk_sim *sim);
/* Check that only the skewed worker is named an outlier. */
void wpk_sim_check_outliers(struct wpk_sim *sim);
/* Check a frame that is about to leave for a worker. */
void wpk_sim_check_reply(struct wpk_sim *sim, const struct wpk_net_address *address,
                         const void *frame, size_t size);
/* Note that a worker has run a trial. */
void wpk_sim_check_execution(struct wpk_sim *sim, wpk_work_id id);

/* ---- sim_served.c: which kernels are served, and in what order, under any clock */

/* Check the kernels after every commit and after every start of wpkd. */
void wpk_sim_look_at_kernels(struct wpk_sim *sim);
/* The simulator's record of a kernel; made if it is not there. */
struct wpk_sim_kernel *wpk_sim_find_kernel(struct wpk_sim *sim, int64_t id);
/* Roll back, as a user, the kernel that was served last, and check that the kernel before it is
 * served again. */
void wpk_sim_roll_back(struct wpk_sim *sim);

/* ---- sim_history.c: invariants of the store */

int64_t wpk_sim_count(struct wpk_sim *sim, const char *sql);
/* Check that lookups find the kernels that the store serves, and no others. */
void wpk_sim_check_index(struct wpk_sim *sim);
/* Check after every start of wpkd that every acknowledged result is stored. */
void wpk_sim_check_acknowledged(struct wpk_sim *sim);
/* Check that served kernels were verified, are the fastest of their finals, and are not revoked. */
void wpk_sim_check_kernels(struct wpk_sim *sim);
/* Check, when no job is left, that nothing else is left, and that every job ended by its budget. */
void wpk_sim_check_end(struct wpk_sim *sim);
/* Check that each search's asks are those of a new strategy that is told the same results. */
void wpk_sim_check_asks(struct wpk_sim *sim);

#endif
