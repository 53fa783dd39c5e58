/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's insides, for its files alone. Each calls only those before it: engine_memory.c
 * (trials made before), engine_trial.c (how a trial ends), engine_build.c and engine_run.c (the two
 * kinds of processes), engine.c (which trial is next), engine_duel.c (finals).
 *
 * A trial's stages; each transition is made in the file named:
 *
 *     NEW ──plan──▶ PLANNED ──build──▶ BUILDING ──built──▶ BUILT ──run──▶ RUNNING ──▶ DONE
 *      │ engine.c       │ engine_build.c                      │ engine_run.c
 *      │                └─ an identical one is on its way: TWIN ──▶ PLANNED or DONE
 *      └─ vendors, and what was built elsewhere ───────────▶ BUILT
 *
 * DONE is reached from every stage by a failure, and from BUILDING by what is only built. */
#ifndef WPK_WORKER_ENGINE_STATE_H
#define WPK_WORKER_ENGINE_STATE_H

#include "common/clock.h"
#include "worker/device_lock.h"
#include "worker/engine.h"
#include "worker/message.h"
#include "worker/planner.h"
#include "worker/process.h"
#include "worker/trace.h"

#define WPK_ENGINE_MEMORY_MAX 512 /* records of finished schedules remembered */
#define WPK_ENGINE_TRIES_MAX 2    /* of a trial whose builder or runner dies */
#define WPK_ENGINE_STARTS_MAX 3   /* of a program that dies before it is ready, in a row */
#define WPK_ENGINE_PATH_MAX 4096
#define WPK_ENGINE_TOO_MANY_THREADS "%d threads, and the machine has %d cores for them"

enum wpk_stage_of_trial {
    WPK_TRIAL_FREE,
    WPK_TRIAL_NEW,
    WPK_TRIAL_PLANNED,
    WPK_TRIAL_TWIN,
    WPK_TRIAL_BUILDING,
    WPK_TRIAL_BUILT,
    WPK_TRIAL_RUNNING,
    WPK_TRIAL_DONE,
};

struct wpk_trial_state {
    enum wpk_stage_of_trial stage;
    uint64_t order;         /* of putting; unique, names the directory and the messages */
    uint64_t done_at;       /* order of finishing */
    struct wpk_trial trial; /* its strings are owned, in `text` */
    char *text[8];
    struct wpk_device target; /* of trial.target */
    struct wpk_planned planned;
    char identity[WPK_SHA256_HEX_SIZE]; /* schedule, op, policy, anchor; empty for vendors */
    int tries;
    uint64_t since_ns; /* when the stage began */
    struct wpk_record record;
};

/* A schedule that was tried before. */
struct wpk_engine_memory {
    char identity[WPK_SHA256_HEX_SIZE];
    struct wpk_record record;
};

/* A started program and what is known of its health. */
struct wpk_engine_program {
    struct wpk_process process;
    bool ready;
    int starts; /* since it was last ready */
};

struct wpk_engine {
    struct wpk_engine_options options; /* paths are owned, below */
    char program_dir[WPK_ENGINE_PATH_MAX];
    char work_dir[WPK_ENGINE_PATH_MAX];
    int core_count;
    int epoll;
    struct wpk_planner planner;
    struct wpk_trace trace;

    uint64_t order; /* of the last trial put */
    uint64_t done;  /* trials finished so far */
    struct wpk_trial_state trials[WPK_ENGINE_TRIALS_MAX];
    struct wpk_engine_memory memory[WPK_ENGINE_MEMORY_MAX];
    int memory_next;

    struct wpk_engine_program builder;
    struct wpk_trial_state *slot[WPK_PROCESS_CORES_MAX]; /* what is built there; NULL: free */
    int slot_count;

    struct wpk_engine_program runner;
    struct wpk_trial_state *running; /* NULL: none */
    bool duelling;
    struct wpk_record duel_records[WPK_DUEL_MAX]; /* [duel_count] */
    char *duel_path[WPK_DUEL_MAX];                /* [duel_count], owned */
    char duel_work[WPK_MESSAGE_WORK_SIZE];
    int duel_count;
    uint64_t patience_ns; /* how long the runner may be silent over what it was given */
    uint64_t deadline_ns; /* of its next word; it stands still while the runner waits for go */

    /* verified ──▶ [wants the device] ──▶ [cores being quieted] ──go──▶ [timed] ──▶ timed */
    struct wpk_device_lock device;
    uint64_t timed_id;       /* of the message that waits for go; 0: none does */
    uint64_t wanted_ns;      /* since when it wants the device */
    uint64_t timed_since_ns; /* since when the device is ours; 0: it is not */
    int timed_threads;
    bool quiet[WPK_PROCESS_CORES_MAX]; /* acknowledged by the builder */

    wpk_err err; /* why it cannot go on; no trial ends any more */
    struct wpk_diag failure;
};

/* ---- engine_memory.c */
/* A trial that has been planned: answer it from memory, let it wait for its twin, or have it
 * built. */
void wpk_engine_recall(struct wpk_engine *engine, struct wpk_trial_state *trial);
/* A trial that has ended; its twins take its result, or go on by themselves. */
void wpk_engine_remember(struct wpk_engine *engine, const struct wpk_trial_state *trial);
void wpk_engine_mark_done(struct wpk_engine *engine, struct wpk_trial_state *trial);

/* ---- engine_trial.c */
/* work_dir/NAME[/REST] */
void wpk_engine_path(const struct wpk_engine *engine, char out[WPK_ENGINE_PATH_MAX],
                     const char *name, const char *rest);
/* The files of one trial's build: work_dir/build/ORDER[/REST] */
void wpk_engine_build_path(const struct wpk_engine *engine, const struct wpk_trial_state *trial,
                           char out[WPK_ENGINE_PATH_MAX], const char *rest);
/* The trial of that order in that stage; NULL when there is none. */
struct wpk_trial_state *wpk_engine_find(struct wpk_engine *engine, uint64_t order,
                                        enum wpk_stage_of_trial stage);
/* The one put first of those in that stage; NULL when there is none. */
struct wpk_trial_state *wpk_engine_first(struct wpk_engine *engine, enum wpk_stage_of_trial stage);
/* End a trial with what is in its record. */
void wpk_engine_finish(struct wpk_engine *engine, struct wpk_trial_state *trial);
void wpk_engine_fail(struct wpk_engine *engine, struct wpk_trial_state *trial,
                     enum wpk_outcome outcome, const char *format, ...) WPK_PRINTF(4, 5);
/* The machine's fault, not a candidate's: the engine ends, and nothing is recorded. The first call
 * counts. */
void wpk_engine_break(struct wpk_engine *engine, wpk_err err, const char *format, ...)
    WPK_PRINTF(3, 4);
/* The same, of what one of its programs says. */
void wpk_engine_break_told(struct wpk_engine *engine, const char *program, const char *why);
/* Start a program of the engine's and listen to it. */
wpk_err wpk_engine_start_program(struct wpk_engine *engine, struct wpk_engine_program *program,
                                 const char *name, char *const *argv, struct wpk_diag *diag);
/* Returns how it ended, as of wpk_process_kill. */
int wpk_engine_stop_program(struct wpk_engine *engine, struct wpk_engine_program *program);
/* What it had is tried once more, or was once too often. */
void wpk_engine_log_interrupted(const struct wpk_trial_state *trial, const char *program);

/* Empty the place of a trial that was taken, or cannot be finished. */
void wpk_engine_clear(struct wpk_trial_state *trial);
void wpk_engine_forget_duel(struct wpk_engine *engine);

/* ---- engine_build.c */
wpk_err wpk_engine_start_builder(struct wpk_engine *engine, struct wpk_diag *diag);
/* Read the builder's messages; start it anew if it died. */
void wpk_engine_hear_builder(struct wpk_engine *engine);
/* Give planned trials to free cores. */
void wpk_engine_feed_builder(struct wpk_engine *engine);
/* Stop building on the cores of the timing that begins, or go on. */
void wpk_engine_quiet(struct wpk_engine *engine, bool quiet);
/* One that is timed, or the other half of one. */
bool wpk_engine_is_timed_core(const struct wpk_engine *engine, int core);
/* Kill the builder if it has not answered for too long; ns until then. */
uint64_t wpk_engine_watch_builder(struct wpk_engine *engine, uint64_t now_ns);

/* ---- engine_run.c */
wpk_err wpk_engine_start_runner(struct wpk_engine *engine, struct wpk_diag *diag);
void wpk_engine_hear_runner(struct wpk_engine *engine);
void wpk_engine_feed_runner(struct wpk_engine *engine);
/* The device is ours and all cores of the timing are quiet: let it begin. */
void wpk_engine_go_if_quiet(struct wpk_engine *engine);
/* The runner was given something, and may be silent over it for so long. */
void wpk_engine_expect_runner(struct wpk_engine *engine, uint64_t timeout_ms);
uint64_t wpk_engine_watch_runner(struct wpk_engine *engine, uint64_t now_ns);

#endif
