/* SPDX-License-Identifier: Apache-2.0 */
/* One wpkd and a few workers in one thread. Everything random comes from the seed; the same seed
 * gives the same run.
 *
 * What goes wrong, each with its own probability: a frame is lost or comes twice, either way; a
 * worker dies and another takes its place; wpkd dies, before or after a commit, and opens its store
 * again. Workers are never wrong about a candidate: its outcome is a function of its text, and so
 * are its time in a final and whether it stands its verification. What must not happen at all fails
 * the test that is running; sim_check.c looks after every commit. */
#ifndef WPK_TESTS_SIM_SIM_H
#define WPK_TESTS_SIM_SIM_H

#include "common/rng.h"
#include "coordinator/performer.h"

#define WPK_SIM_WORKERS 3
#define WPK_SIM_HELD_MAX 16
#define WPK_SIM_FRAMES_MAX 256
#define WPK_SIM_STEPS_MAX 40000

struct wpk_sim_frame {
    bool to_worker;
    int worker;
    uint32_t peer;
    struct wpk_buf data; /* owned */
};

/* One piece of work in a worker's hands. */
struct wpk_sim_holding {
    struct wpk_work work; /* what it points to is gone, but for the candidate */
    char *candidate;      /* owned */
    uint64_t final_ns[WPK_CONTENDERS_MAX]; /* of a final's contenders */
    bool done;
    bool uploaded;
};

/* What a worker knows; it dies with all of it. */
struct wpk_sim_worker {
    uint32_t peer; /* of its connection; a new one for each life */
    int life;
    uint64_t session;
    struct wpk_sim_holding held[WPK_SIM_HELD_MAX];
    uint32_t held_count;
    bool awaits; /* an answer to: */
    enum wpk_message_kind asked;
    uint32_t asked_index; /* whose artifact it was about */
    uint64_t asked_ns;
};

struct wpk_sim {
    struct wpk_rng rng;
    double trouble; /* 0: nothing goes wrong */
    bool resting;   /* the workers do nothing of their own */
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
    struct wpk_performer *performer;
    struct wpk_sim_worker workers[WPK_SIM_WORKERS];
    uint32_t peer_last;
    struct wpk_sim_frame frames[WPK_SIM_FRAMES_MAX]; /* under way */
    int frame_count;
    const struct wpk_message *delivering;            /* what wpkd was told last; NULL: nothing */
    int responses;
    int executions; /* trials run, the same one twice included */
    int crashes;    /* of wpkd */
};

void wpk_sim_init(struct wpk_sim *sim, uint64_t seed, double trouble);
void wpk_sim_fini(struct wpk_sim *sim);

/* Hand wpkd the job; take back the one that it works on first. */
void wpk_sim_submit(struct wpk_sim *sim, const char *job);
void wpk_sim_cancel(struct wpk_sim *sim);
bool wpk_sim_is_live(const struct wpk_sim *sim);
/* 50 ms: everybody has a turn, and what is under way arrives. */
void wpk_sim_step(struct wpk_sim *sim);
/* Step until no job is left; returns the steps it took, WPK_SIM_STEPS_MAX at most. */
int wpk_sim_finish(struct wpk_sim *sim);

/* What wpkd's side does for the workers. Frames are copied. */
void wpk_sim_send(struct wpk_sim *sim, const struct wpk_sim_frame *frame, const void *data,
                  size_t size);
void wpk_sim_commit(struct wpk_sim *sim);

/* What a contender's time is in every final. */
uint64_t wpk_sim_final_ns(const char *provider, const char *artifact);
/* Does the candidate stand its verification? */
bool wpk_sim_verifies(const char *candidate);

/* What holds after every event: a lease has two ends, and both count it. */
void wpk_sim_check_leases(const struct wpk_sim *sim);
/* A frame for a worker, about to leave: a result that it acknowledges is in the store. */
void wpk_sim_check_reply(const struct wpk_sim *sim, const void *frame, size_t size);

/* What a worker does: work, ask, take an answer; and die, to be followed by another. */
void wpk_sim_worker_turn(struct wpk_sim *sim, int index);
void wpk_sim_worker_receive(struct wpk_sim *sim, const struct wpk_sim_frame *frame);
void wpk_sim_worker_die(struct wpk_sim *sim, int index);

#endif
