/* SPDX-License-Identifier: Apache-2.0 */
/* One wpkd, its users and its workers in one thread, under a fake clock. What is going to happen
 * waits in a queue ordered by time; everything random comes from the seed, so that the same seed
 * gives the same run.
 *
 *      users ──requests──▶ ┌──────┐ ◀──frames── workers (2 to 40)
 *                          │ wpkd │                each link drops, delays, doubles, reorders
 *      disk ◀──commits──── └──────┘ ──replies──▶
 *
 * What goes wrong while there is trouble: frames; workers that die, hang and come back with what
 * they had, are stuck with what they run, answer twice, answer for leases long gone, give back
 * and leave, change their device, cannot get what others have built, and whose anchors crash;
 * wpkd that dies before, in or after a commit; a disk that is full; strategies that answer late;
 * a wall clock that is set. Users submit, pause and cancel, exceed their quotas, ask for labels
 * that some workers or none have, revoke kernels and roll back. Workers are never wrong about a
 * candidate, but for all times of one that is skewed: its outcome is a function of its text, and
 * so are its time in a final and whether it stands its verification. What must not happen at all
 * ends the process, with the seed (wpk_sim_fail); sim_check.c and sim_history.c say what that is,
 * sim_served.c for what is served, and sim_fair.c for the time of devices. */
#ifndef WPK_TESTS_SIM_SIM_H
#define WPK_TESTS_SIM_SIM_H

#include "common/crypto.h"
#include "common/rng.h"
#include "coordinator/effects/executor.h"
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
    double trouble;  /* 0: nothing goes wrong; 1: as much as can be lived with */
    bool liars;      /* workers change their device */
    bool mixed;      /* some workers only build, some only run */
    bool late;       /* strategies take their time */
    bool jumps;      /* the wall clock does, by hours */
    bool rules;      /* owners have weights and quotas: see sim_wpkd.c */
    bool skewed;     /* all times of the first worker are wrong, by: */
    double skew;
    uint64_t run_ms; /* that every work item takes; 0: it is drawn */
    bool verbose;    /* say what happens, on standard output */
};

/* One work item in a worker's hands. */
struct wpk_sim_holding {
    struct wpk_work work; /* what it points to is gone, but for the candidate */
    char *candidate;      /* owned */
    char artifacts[WPK_CONTENDERS_MAX][WPK_ID_MAX]; /* needed to run it; "": a vendor's */
    uint32_t artifact_count;
    uint32_t fetched;                      /* of them */
    uint64_t final_ns[WPK_CONTENDERS_MAX]; /* of a final's contenders */
    char anchor[WPK_ID_MAX];               /* what it is timed in turns with; "": nothing */
    uint64_t anchor_ns;
    bool slow; /* the machine is in the slower of its two states: every time is, alike */
    bool done;
    bool lost;          /* what it needs cannot be had: it was not tried */
    bool anchor_failed; /* its anchor crashed beside it */
    bool overtaken;     /* another worker brought it built, which then got lost */
    bool uploaded;
};

/* What a worker knows; it dies with all of it. */
struct wpk_sim_worker {
    int index;
    int life;
    unsigned roles;
    int device;    /* what class it says it is of */
    uint32_t peer; /* of its connection; a new one for each life; 0: it is dead */
    uint64_t session;
    bool named;    /* a poll of this session has said what it holds, and was answered */
    uint64_t wake; /* number of the event that wakes it; others are stale */
    uint64_t hung_until_ns;
    /* the first work item that is not done is run until then; 0: not begun */
    uint64_t run_until_ns;
    uint64_t rest_until_ns; /* told to come back later */
    uint64_t excused_ns;    /* until then, what it holds may be given to others */
    struct wpk_sim_holding held[WPK_SIM_HELD_MAX];
    uint32_t held_count;
    struct wpk_sim_holding sent[WPK_SIM_MEMORY]; /* a ring of what was acknowledged */
    uint32_t sent_count;
    bool leaving;
    bool awaits; /* an answer to: */
    enum wpk_message_kind asked;
    uint32_t asked_index;  /* whose artifact it was about */
    uint32_t asked_number; /* of the request */
    uint64_t asked_ns;
    uint64_t polled_ns;
};

/* What the simulator saw of an ask, wherever it is now. */
struct wpk_sim_work_item {
    uint64_t key; /* search and number; 0: free */
    uint32_t executions;
    bool acknowledged; /* somebody was told that its result is recorded */
};

/* The results of a request, for whoever sees its answer. */
struct wpk_sim_request {
    wpk_work_id *ids; /* owned */
    bool *built;      /* owned; is it no more than a build that went well, or nothing at all? */
    uint32_t count;
};

struct wpk_sim_job {
    bool submitted;
    bool accepted; /* and its user knows */
    bool hopeless; /* no worker has the label that it wants */
    uint32_t candidates;
    uint32_t seconds;
    char id[WPK_JOB_ID_SIZE]; /* once accepted */
};

/* A kernel, as the commits that were seen say it is. */
struct wpk_sim_kernel {
    int64_t id;
    int64_t problem;
    int64_t served_at;
    bool served;
    int order;        /* of all, in which it came to be served; 0: it never was */
    bool timed;       /* in a final, when it was made: its time is from there */
    bool rolled_back; /* its problem was, once */
    uint64_t ns;      /* of wpk_sim_check_kernels(); 0: not to be compared */
};

struct wpk_sim {
    struct wpk_sim_options options;
    struct wpk_rng rng;
    double trouble; /* now */
    char directory[64];
    struct wpk_clock_fake clock;
    uint64_t began_ns;
    struct wpk_sim_queue queue;

    struct wpk_store *store; /* NULL: wpkd is not there */
    struct wpk_index *index;
    struct wpk_executor *executor;
    uint64_t life;               /* of wpkd: ticks and turns of another are stale */
    struct wpk_sim_event *inbox; /* owned; [inbox_count]: what the next turn takes */
    uint32_t inbox_count;
    uint32_t inbox_capacity;
    bool turn_set;
    bool committing;       /* what leaves now is durable, or should be */
    uint64_t disk_full_ns; /* until then */
    uint64_t late_ns;      /* until then no strategy answers */
    bool degraded;         /* a commit has failed, and none has succeeded since */

    struct wpk_sim_worker workers[WPK_SIM_WORKERS_MAX];
    int worker_count;
    bool resting; /* the workers do nothing of their own */
    uint32_t peer_last;
    struct wpk_sim_request *requests; /* owned; [request_count], by number */
    uint32_t request_count;
    uint32_t request_capacity;
    struct wpk_sim_work_item *items; /* owned; a hash table */

    struct wpk_sim_job jobs[WPK_SIM_JOBS_MAX]; /* named n0, n1, ...; [job_count] */
    int job_count;
    const char *owner; /* who asks over HTTP */
    uint64_t http_last;
    int responses;
    int refusals; /* of jobs, for their owner's quota */
    int revoked;  /* kernels */
    int rolled_back;
    struct wpk_sim_kernel kernels[WPK_SIM_KERNELS_MAX];
    int kernel_count;
    int served_last; /* the last `order` */

    char leases[WPK_SIM_LEASES_MAX]; /* of trials, by the owner they are for; the first so many */
    int lease_count;
    int executions; /* trials run, the same one twice included */
    int crashes;    /* of wpkd */
    int deaths;     /* of workers, and times they hung */
    int commits;
    bool found;  /* the worker whose times are wrong was called an outlier */
    bool blamed; /* something was given out for the last time: it may be abandoned */
};

void wpk_sim_init(struct wpk_sim *sim, const struct wpk_sim_options *options);
void wpk_sim_fini(struct wpk_sim *sim);

/* Let that much time pass. */
void wpk_sim_run(struct wpk_sim *sim, uint64_t ms);
/* No more trouble: what hung goes on, what died is back. */
void wpk_sim_calm(struct wpk_sim *sim);
/* Run until no job is left, and nobody is stuck; false if a job is left after `hours`. */
bool wpk_sim_finish(struct wpk_sim *sim, int hours);

/* Say what happens, if anybody wants to know. */
void wpk_sim_say(const struct wpk_sim *sim, const char *format, ...) WPK_PRINTF(2, 3);
/* What must not happen has: print it with the seed, and end. */
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
/* As kill -9 would: what was not committed is gone. It starts again after `ms`. */
void wpk_sim_wpkd_crash(struct wpk_sim *sim, uint64_t ms);
void wpk_sim_wpkd_stop(struct wpk_sim *sim);
/* Take what came in, and commit it. */
void wpk_sim_wpkd_turn(struct wpk_sim *sim);
void wpk_sim_wpkd_tick(struct wpk_sim *sim);
/* A request of a user's, at once. `id`: job n<id - 1> is submitted; 0: it is another. */
void wpk_sim_post(struct wpk_sim *sim, uint64_t id, const char *path, const char *body);
const struct wpk_coordinator *wpk_sim_coordinator(const struct wpk_sim *sim);
bool wpk_sim_is_live(const struct wpk_sim *sim);

/* ---- sim_net.c */

/* Send a frame to wpkd, or to a worker; copied. */
void wpk_sim_net_to_wpkd(struct wpk_sim *sim, struct wpk_sim_worker *worker, const void *data,
                         size_t size);
void wpk_sim_net_to_worker(struct wpk_sim *sim, const struct wpk_net_address *address,
                           const void *data, size_t size);
/* The connection ends: wpkd hears of it. */
void wpk_sim_net_cut(struct wpk_sim *sim, uint32_t peer);
void wpk_sim_net_arrive(struct wpk_sim *sim, struct wpk_sim_event *event);

/* ---- sim_worker.c */

void wpk_sim_worker_start(struct wpk_sim *sim, int index);
void wpk_sim_worker_turn(struct wpk_sim *sim, struct wpk_sim_worker *worker);
void wpk_sim_worker_receive(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                            const struct wpk_sim_event *event);
/* As kill -9 would. Another takes its place after `ms`. */
void wpk_sim_worker_die(struct wpk_sim *sim, int index, uint64_t ms);
void wpk_sim_worker_wake(struct wpk_sim *sim, struct wpk_sim_worker *worker, uint64_t at_ns);
void wpk_sim_worker_fini(struct wpk_sim_worker *worker);
/* What it runs takes so long; it goes on speaking to wpkd. */
void wpk_sim_worker_stick(struct wpk_sim *sim, struct wpk_sim_worker *worker, uint64_t s);

/* ---- sim_truth.c: what comes of a candidate, a function of its text */

/* ns; 0: it fails. */
uint64_t wpk_sim_trial_ns(const char *candidate);
/* What a contender's time is in every final. */
uint64_t wpk_sim_final_ns(const char *provider, const char *artifact);
/* What an artifact took in the search. */
uint64_t wpk_sim_artifact_ns(const char *artifact);
/* Does the candidate stand its verification? */
bool wpk_sim_verifies(const char *candidate);
/* The artifact of a candidate: its text stands for the code. */
void wpk_sim_artifact(const char *candidate, char out[WPK_SHA256_HEX_SIZE]);
/* `skew`: all its times are that many times what they are. */
void wpk_sim_fill_result(const struct wpk_sim_holding *held, double skew,
                         struct wpk_result *result);

/* ---- sim_plan.c: what users do */

/* Draw what happens until there is no more trouble; returns when that is, in ms. */
uint64_t wpk_sim_plan(struct wpk_sim *sim);
void wpk_sim_act(struct wpk_sim *sim, int action);
void wpk_sim_submit(struct wpk_sim *sim, const char *job);
void wpk_sim_cancel(struct wpk_sim *sim, const char *id);
/* A worker's laboratory, which jobs may ask for: "a" or "b". */
const char *wpk_sim_lab(const struct wpk_sim *sim, int worker);
/* What is paused or ordered to rest goes on. */
void wpk_sim_resume_all(struct wpk_sim *sim);

/* ---- sim_check.c: what holds all the time */

struct wpk_sim_work_item *wpk_sim_find_work_item(struct wpk_sim *sim, uint64_t search,
                                                 uint32_t number);
/* The result is there; the candidate was asked for. */
void wpk_sim_check_recorded(struct wpk_sim *sim, wpk_work_id id);
void wpk_sim_check_asked(struct wpk_sim *sim, const struct wpk_work *work);
/* After every commit: a lease has two ends, and both count it; owners keep to their quotas; what
 * nobody can do says so; and what is looked up is what is stored. */
void wpk_sim_check_state(struct wpk_sim *sim);
/* Who is said to have other times than its class, and does? */
void wpk_sim_check_outliers(struct wpk_sim *sim);
/* A frame for a worker, about to leave. */
void wpk_sim_check_reply(struct wpk_sim *sim, const struct wpk_net_address *address,
                         const void *frame, size_t size);
/* A worker has run a trial. */
void wpk_sim_check_execution(struct wpk_sim *sim, wpk_work_id id);

/* ---- sim_served.c: which kernels are served, in what order, however the clock is set */

/* After every commit, and whenever wpkd has started. */
void wpk_sim_look_at_kernels(struct wpk_sim *sim);
/* Made if it is not there. */
struct wpk_sim_kernel *wpk_sim_find_kernel(struct wpk_sim *sim, int64_t id);
/* A user's: of the problem that serves something else since the shortest time. What comes back is
 * what it served before. */
void wpk_sim_roll_back(struct wpk_sim *sim);

/* ---- sim_history.c: what holds for what is stored */

int64_t wpk_sim_count(struct wpk_sim *sim, const char *sql);
/* Lookups find what the store says is served, and nothing else. */
void wpk_sim_check_index(struct wpk_sim *sim);
/* Whenever wpkd has started: what was acknowledged is there. */
void wpk_sim_check_acknowledged(struct wpk_sim *sim);
/* What is served was verified, is the fastest of its finals, and was not revoked. */
void wpk_sim_check_kernels(struct wpk_sim *sim);
/* No job is left: nothing else is, and every job ended as its budget says. */
void wpk_sim_check_end(struct wpk_sim *sim);
/* Each search has asked what its strategy asks when it is told the same. */
void wpk_sim_check_asks(struct wpk_sim *sim);

#endif
