/* SPDX-License-Identifier: Apache-2.0 */
/* The engine turns trials into records: it builds, verifies and times candidates on one device.
 *
 * The engine owns two processes. wpk-builder forks a child for each build; wpk-runner forks a child
 * for each candidate that it verifies and times. Builds stop on the cores that are being timed, and
 * go on elsewhere. Engines of one machine time in turns (device_lock.c); the wait for a turn counts
 * against no timeout.
 *
 * A child that crashes or hangs is an outcome of its candidate. A process of the two that dies is
 * started again and its trials are tried once more; a trial that loses its process twice fails
 * (`build_error`, `run_crash`). If a process dies three times before it is ready, the engine fails.
 *
 *      put ──▶ [schedule] ──▶ [build] ──▶ [verify] ──▶ [measure] ──▶ take
 *                  │             │            │             │
 *                  └─────────────┴────────────┴─────────────┴──▶ an outcome with its log
 *
 * The engine has no thread: the caller polls wpk_engine_fd() and calls wpk_engine_advance(). */
#ifndef WPK_WORKER_ENGINE_ENGINE_H
#define WPK_WORKER_ENGINE_ENGINE_H

#include "schema/accuracy.h"
#include "schema/device.h"
#include "schema/record.h"

#define WPK_ENGINE_TRIALS_MAX 256 /* put and not yet taken */

struct wpk_engine;

struct wpk_engine_options {
    struct wpk_device device;
    const char *program_dir;       /* the directory of wpk-builder and wpk-runner */
    const char *work_dir;          /* private and existing; artifacts stay in work_dir/artifacts */
    uint64_t build_timeout_ms;     /* 0: 30 000 */
    uint64_t run_timeout_ms;       /* 0: 30 000, for verifying and timing one candidate; large ops
                                    get more: runner_ops.h */
    uint64_t memory_bytes_max;     /* of a child's address space, 0: 4 GiB */
    uint64_t run_memory_bytes_max; /* the same of a child that runs a candidate; set by the engine:
                                    * 0 on a GPU, which means no limit */
    int builder_count;             /* builds at a time; 0: as many as cores */
    bool builds_not;               /* no wpk-builder: trials name their artifacts */
    bool runs_not;                 /* no wpk-runner: trials end when they are built */
    const char *trace_path;        /* a file for a Chrome trace; NULL: none */
};

/* One trial. All pointers are borrowed until wpk_engine_put returns. */
struct wpk_trial {
    uint64_t id;           /* the caller's; comes back with the record */
    const char *work;      /* the work item's name in all logs; NULL: "-" */
    const char *op;        /* whole form of the original program (ir/notation/notation.h) */
    const char *layouts;   /* "fixed" or "any" */
    const char *provider;  /* "halide-cpu", "c/gcc-12.2.0", "onednn" */
    const char *candidate; /* text of a candidate (search/space.h); ignored with `schedule` */
    const char *schedule;  /* text written by hand, or NULL */
    int plain;             /* number of a candidate of the plain kernel, from 1; 0: `candidate` */
    struct wpk_policy policy;
    uint64_t incumbent_ns;        /* best time so far, for racing; 0: none */
    struct wpk_accuracy accuracy; /* bound of a winner's error; = {0}: no bound */
    const char *anchor;     /* path of the anchor's artifact; NULL: the candidate is timed alone */
    double incumbent_ratio; /* best time so far / the anchor's, for racing; 0: none */
    bool final;             /* a winner may be served: it faces fresh inputs of every kind */
    bool keep_artifact;     /* keep the artifact even if it is not faster than the incumbent */
    bool build_only;        /* only build: an ok trial has an artifact and no times */
    const struct wpk_device *target; /* the device to build for; NULL: the engine's */
    const char *artifact; /* path of an artifact built elsewhere, to be run only; NULL: build it */
    uint64_t build_ns;    /* with `artifact`: how long its build took */
};

/* A final: contenders, timed in turns. Pointers are borrowed until duel_begin returns. */
struct wpk_duel {
    const char *work; /* as of a trial */
    const char *op;
    const char *layouts;
    const char *const *paths; /* [count] shared objects, or "onednn" for the vendor */
    int count;
    const struct wpk_policy *policy;
    int round_count;
};

/* Start an engine with its processes.
 *   owns    caller calls wpk_engine_close; the processes die with the engine
 *   errors  WPK_ENOENT a program is missing; WPK_ESYSTEM, WPK_ENOMEM; those of work_dir's files */
wpk_err wpk_engine_open(const struct wpk_engine_options *options, struct wpk_engine **out,
                        struct wpk_diag *diag);
void wpk_engine_close(struct wpk_engine *engine);

/* Descriptor that becomes readable when wpk_engine_advance has something to do. */
int wpk_engine_fd(const struct wpk_engine *engine);
/* Move every trial as far as it goes without waiting. *next_ms: call again after so many ms even if
 * the descriptor is not readable (UINT64_MAX: no need).
 *   errors  WPK_ENOSPC, WPK_ESYSTEM, ...  the machine's fault: work_dir is full, or a program does
 *           not start. The engine has failed for good, and trials under way get no outcome. A
 *           candidate cannot cause this. */
wpk_err wpk_engine_advance(struct wpk_engine *engine, uint64_t *next_ms);
/* Why the engine failed; an empty text while it has not. */
const struct wpk_diag *wpk_engine_failure(const struct wpk_engine *engine);

/* Begin a trial. A trial that needs more threads than there are cores, or a step that this engine
 * leaves out, ends WPK_OUTCOME_UNSUPPORTED.
 *   errors  WPK_ENOSPC  WPK_ENGINE_TRIALS_MAX reached */
wpk_err wpk_engine_put(struct wpk_engine *engine, const struct wpk_trial *trial);
/* Take the next finished trial, in the order of finishing.
 *   owns    caller calls wpk_record_fini on `out`
 *   errors  WPK_ENOENT none has finished */
wpk_err wpk_engine_take(struct wpk_engine *engine, uint64_t *id, struct wpk_record *out);
/* The id of the trial that the runner has; 0: none, or a duel. */
uint64_t wpk_engine_running(const struct wpk_engine *engine);
/* The time (wpk_clock_ns) since which the engine waits for the device, which another engine has;
 * 0: it does not wait. */
uint64_t wpk_engine_device_wanted_ns(const struct wpk_engine *engine);

/* Begin a duel: time artifacts in turns, round by round, each in a process of its own. The duel
 * goes on in wpk_engine_advance; no trial is run meanwhile.
 *   errors  WPK_EUNSUPPORTED more threads than there are cores, or the engine has no runner
 *           WPK_EBUSY        the runner has a trial or another duel; those of wpk_engine_advance */
wpk_err wpk_engine_duel_begin(struct wpk_engine *engine, const struct wpk_duel *duel,
                              struct wpk_diag *diag);
/* Take the result of a duel.
 *   shape   timing [count]; a contender that failed has sample_count 0, and `diag` says why the
 *           last of those failed
 *   errors  WPK_EBUSY        the duel goes on
 *           WPK_EUNSUPPORTED no contender could be timed; those of wpk_engine_advance */
wpk_err wpk_engine_duel_end(struct wpk_engine *engine, struct wpk_timing *timing,
                            struct wpk_diag *diag);
/* Begin and end a duel, waiting for the trial that is being run and for the duel's end. */
wpk_err wpk_engine_duel(struct wpk_engine *engine, const struct wpk_duel *duel,
                        struct wpk_timing *timing, struct wpk_diag *diag);

#endif
