/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's state, for its own files. Each file calls only those before it: engine_memory.c
 * (trials made before), engine_trial.c (how a trial ends), engine_build.c and engine_run.c (the two
 * processes), engine.c (which trial is next), engine_duel.c (finals).
 *
 * A trial's stages; each transition is made in the file named:
 *
 *     NEW ──plan──▶ PLANNED ──build──▶ BUILDING ──built──▶ BUILT ──run──▶ RUNNING ──▶ DONE
 *      │ engine.c       │ engine_build.c                      │ engine_run.c
 *      │                └─ an identical one is on its way: TWIN ──▶ PLANNED or DONE
 *      └─ vendors, and artifacts built elsewhere ──────────▶ BUILT
 *
 * A failed trial goes to DONE from any stage, and a build-only trial from BUILDING. */
#ifndef WPK_WORKER_ENGINE_ENGINE_STATE_H
#define WPK_WORKER_ENGINE_ENGINE_STATE_H

#include "common/clock.h"
#include "common/err.h"
#include "worker/engine/engine.h"
#include "worker/engine/planner.h"
#include "worker/engine_message.h"
#include "worker/process.h"

#include <stdint.h>
#include <stdio.h>

/* A lock by which the workers of one machine time on a device in turns, whichever user runs them.
 *
 *      free ──take──▶ held ──give──▶ free
 *       └───take, and another holds it ──▶ waiting ──the holder gives it or dies──▶ take again
 *
 * The lock is an abstract Unix socket's name. One process binds it, and it ends with that process,
 * even by kill -9. Every user sees the same name, and so do services with a private /tmp and /run;
 * a lock file would belong to its first user. A waiting process connects to the holder and notices
 * the end of the connection, so that no process polls beside a timing. The name is one per network
 * namespace: containers with networks of their own must not share cores. A local user who keeps the
 * lock stops all timing, but such a user could disturb it with any busy program as well.
 *
 * Only timing is exclusive: builds of another worker go on, also on a core that is being timed. */

struct wpk_device_lock {
    const char *name; /* borrowed; of the device */
    int held_fd;      /* -1: not held */
    int wait_fd;      /* connection to the holder, readable when it ends; -1: none */
};

void wpk_device_lock_init(struct wpk_device_lock *lock, const char *name);

/* Take the lock without blocking; WPK_OK if this lock is held already.
 *   errors  WPK_EBUSY    another process has it: wait for wait_fd, or a moment where that is -1
 *           WPK_ESYSTEM  there are no local sockets here */
wpk_err wpk_device_lock_take(struct wpk_device_lock *lock);
/* Release the lock, or stop waiting for it. */
void wpk_device_lock_give(struct wpk_device_lock *lock);

/* A trace of the engine's wall time in Chrome's format, for chrome://tracing or Perfetto. Times are
 * of the system's monotonic clock, so that traces of one machine can be shown together. */

/* Rows of the trace. */
#define WPK_TRACE_ENGINE 0
#define WPK_TRACE_RUNNER 1
#define WPK_TRACE_BUILDER 2 /* + the builder's slot */

/* = {0} writes nothing. */
struct wpk_trace {
    FILE *file;
};

/* Create the file.   errors  those of wpk_fs_err */
wpk_err wpk_trace_open(struct wpk_trace *trace, const char *path);
void wpk_trace_close(struct wpk_trace *trace);
/* Write a span of time. `name` must need no escaping in JSON. */
void wpk_trace_span(struct wpk_trace *trace, int row, const char *name, uint64_t trial,
                    uint64_t from_ns, uint64_t to_ns);

#define WPK_ENGINE_MEMORY_MAX 512 /* records of finished schedules remembered */
#define WPK_ENGINE_TRIES_MAX 2    /* of a trial whose builder or runner dies */
#define WPK_ENGINE_STARTS_MAX 3   /* in a row, of a program that dies before it is ready */
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
    uint64_t order;         /* number in the order of putting; names directory and messages */
    uint64_t done_at;       /* number in the order of finishing */
    struct wpk_trial trial; /* its strings are owned, in `text` */
    char *text[8];
    struct wpk_device target; /* what trial.target points to */
    struct wpk_planned planned;
    char identity[WPK_SHA256_HEX_SIZE]; /* see engine_memory.c; empty: never remembered */
    int tries;
    uint64_t since_ns; /* when the stage began */
    struct wpk_record record;
};

/* A trial made before. */
struct wpk_engine_memory {
    char identity[WPK_SHA256_HEX_SIZE];
    struct wpk_record record;
};

/* wpk-builder or wpk-runner, and its health. */
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
    struct wpk_trial_state *slot[WPK_PROCESS_CORES_MAX]; /* trial built on each core; NULL: free */
    int slot_count;

    struct wpk_engine_program runner;
    struct wpk_trial_state *running; /* NULL: none */
    bool duelling;
    struct wpk_record duel_records[WPK_DUEL_MAX]; /* [duel_count] */
    char *duel_path[WPK_DUEL_MAX];                /* [duel_count], owned */
    char duel_work[WPK_ENGINE_MESSAGE_WORK_SIZE];
    int duel_count;
    uint64_t patience_ns; /* how long the runner may be silent, once it has the answers */
    uint64_t deadline_ns; /* of its next message; does not run while the runner waits for go */

    /* verified ──▶ [wants the device] ──▶ [cores being quieted] ──go──▶ [timed] ──▶ timed */
    struct wpk_device_lock device;
    uint64_t timed_id;       /* id of the trial or duel that is ready to be timed; 0: none */
    uint64_t wanted_ns;      /* since when the engine wants the device */
    uint64_t timed_since_ns; /* since when the engine has the device; 0: it has not */
    int timed_threads;
    bool quiet[WPK_PROCESS_CORES_MAX]; /* acknowledged by the builder */

    wpk_err err; /* why the engine failed: no trial ends any more; WPK_OK: it works */
    struct wpk_diag failure;
};

/* ---- engine_memory.c */
/* After planning: answer the trial from memory, let it wait for an identical one, or queue it for
 * building. */
void wpk_engine_recall(struct wpk_engine *engine, struct wpk_trial_state *trial);
/* After the end of a trial: remember its record, and give it to identical trials that wait. */
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
/* The oldest trial in that stage; NULL when there is none. */
struct wpk_trial_state *wpk_engine_first(struct wpk_engine *engine, enum wpk_stage_of_trial stage);
/* End a trial with the outcome in its record; keep its artifact if that may be needed. */
void wpk_engine_finish(struct wpk_engine *engine, struct wpk_trial_state *trial);
/* End a trial with this outcome and this log. */
void wpk_engine_fail(struct wpk_engine *engine, struct wpk_trial_state *trial,
                     enum wpk_outcome outcome, const char *format, ...) WPK_PRINTF(4, 5);
/* Fail the engine: the machine is at fault, not a candidate, and no trial is recorded any more.
 * Calls after the first have no effect. */
void wpk_engine_break(struct wpk_engine *engine, wpk_err err, const char *format, ...)
    WPK_PRINTF(3, 4);
/* The same for a program's message "broken"; a full disk is named instead where it is the cause. */
void wpk_engine_break_told(struct wpk_engine *engine, const char *program, const char *why);
/* Start a program and listen to its channel. */
wpk_err wpk_engine_start_program(struct wpk_engine *engine, struct wpk_engine_program *program,
                                 const char *name, char *const *argv, struct wpk_diag *diag);
/* Kill a program; returns how it ended, as wpk_process_kill does. */
int wpk_engine_stop_program(struct wpk_engine *engine, struct wpk_engine_program *program);
/* Give `hear` each message of a program that runs. `bury` is told the failure of its channel. */
void wpk_engine_hear_program(struct wpk_engine *engine, struct wpk_engine_program *program,
                             wpk_err (*hear)(struct wpk_engine *engine, const struct wpk_buf *text),
                             void (*bury)(struct wpk_engine *engine, wpk_err err));
/* Log that `program` died during a trial. */
void wpk_engine_log_interrupted(const struct wpk_trial_state *trial, const char *program);

/* Free the place of a trial that was taken, or that cannot be finished. */
void wpk_engine_clear(struct wpk_trial_state *trial);
void wpk_engine_forget_duel(struct wpk_engine *engine);

/* ---- engine_build.c */
wpk_err wpk_engine_start_builder(struct wpk_engine *engine, struct wpk_diag *diag);
/* Read the builder's messages; start the builder again if it died. */
void wpk_engine_hear_builder(struct wpk_engine *engine);
/* Give planned trials to free cores. */
void wpk_engine_feed_builder(struct wpk_engine *engine);
/* Pause builds on the cores to be timed, or resume them. */
void wpk_engine_quiet(struct wpk_engine *engine, bool quiet);
/* True if the core is being timed, or is a hardware thread of a core that is. */
bool wpk_engine_is_timed_core(const struct wpk_engine *engine, int core);
/* Kill the builder if it has been silent for too long; returns ns until then. */
uint64_t wpk_engine_watch_builder(struct wpk_engine *engine, uint64_t now_ns);

/* ---- engine_run.c */
wpk_err wpk_engine_start_runner(struct wpk_engine *engine, struct wpk_diag *diag);
/* Read the runner's messages; start the runner again if it died. */
void wpk_engine_hear_runner(struct wpk_engine *engine);
/* Give the oldest built trial to an idle runner. */
void wpk_engine_feed_runner(struct wpk_engine *engine);
/* Send "go" once the engine has the device and all cores to be timed are quiet. */
void wpk_engine_go_if_quiet(struct wpk_engine *engine);
/* Set how long the runner may be silent over the trial or duel that it was given, besides the time
 * for computing the answers. */
void wpk_engine_expect_runner(struct wpk_engine *engine, uint64_t timeout_ms);
/* Kill the runner if it has been silent for too long; returns ns until the next look. */
uint64_t wpk_engine_watch_runner(struct wpk_engine *engine, uint64_t now_ns);

#endif
