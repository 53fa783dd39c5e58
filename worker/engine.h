/* SPDX-License-Identifier: Apache-2.0 */
/* The engine turns trials into records: builds, verifies and times candidates on one device.
 *
 * It owns a pool of builder processes (wpk-builder, a zygote that forks a child per candidate)
 * and one runner process (wpk-runner, which forks a child per candidate and holds the device).
 * Builds overlap with timing only where that does not disturb it: a 1-thread kernel is timed on
 * the last core while builds go on on the others; every build stops while a kernel that uses all
 * cores is timed. Engines of one machine time in turns (worker/device_lock.h), and the time one
 * waits for its turn is nobody's fault.
 *
 *      put ──▶ [schedule] ──▶ [build] ──▶ [verify] ──▶ [measure] ──▶ take
 *                  │             │            │             │
 *                  └─────────────┴────────────┴─────────────┴──▶ an outcome with its log
 *
 * Single-threaded: the owner polls wpk_engine_fd() and calls wpk_engine_advance(). */
#ifndef WPK_WORKER_ENGINE_H
#define WPK_WORKER_ENGINE_H

#include "op/program.h"
#include "schema/accuracy.h"
#include "schema/device.h"
#include "schema/record.h"

#define WPK_ENGINE_TRIALS_MAX 256 /* put and not yet taken */

struct wpk_engine;

struct wpk_engine_options {
    struct wpk_device device;
    const char *program_dir;   /* where wpk-builder and wpk-runner stand */
    const char *work_dir;      /* private, exists; artifacts are left in work_dir/artifacts */
    uint64_t build_timeout_ms; /* 0: 30 000 */
    uint64_t run_timeout_ms;   /* 0: 30 000, for verifying and timing one candidate */
    uint64_t memory_bytes_max; /* of one candidate's child, 0: 4 GiB */
    int builder_count;         /* 0: as many as cores */
    bool builds_not;           /* no wpk-builder: trials come with their artifacts */
    bool runs_not;             /* no wpk-runner: trials end when they are built */
    const char *trace_path;    /* NULL, or a file for a Chrome trace of where the time goes */
};

/* One trial. Everything is borrowed until wpk_engine_put returns. */
struct wpk_trial {
    uint64_t id;           /* the caller's; comes back with the record */
    const char *work;      /* its name in the logs of all who work on it; NULL: "-" */
    const char *op;        /* whole form of the original program (op/notation.h) */
    const char *layouts;   /* "fixed" or "any" */
    const char *provider;  /* "halide-cpu", "onednn" */
    const char *candidate; /* genes as text (search/space.h); or, with `schedule`, ignored */
    const char *schedule;  /* directive text written by hand, or NULL */
    int plain;             /* number of a candidate of the plain kernel, from 1; 0: `candidate` */
    struct wpk_policy policy;
    uint64_t incumbent_ns;        /* best so far for racing, 0: none */
    struct wpk_accuracy accuracy; /* what is outside is no winner; = {0}: any error is in */
    const char *anchor;     /* path of what it is timed in turns with; NULL: it is timed alone */
    double incumbent_ratio; /* best so far for racing with an anchor, 0: none */
    bool final;             /* a winner may be served: it faces fresh inputs of every kind */
    bool keep_artifact;     /* keep the shared object even if it is not faster than incumbent */
    bool build_only;        /* ends ok with its artifact kept and no times, or as it failed */
    const struct wpk_device *target; /* what it is built for; NULL: the engine's device */
    const char *artifact; /* path of what was built elsewhere: it is only run; NULL: build it */
    uint64_t build_ns;    /* with `artifact`: what building it took */
};

/* Finalists, timed in turns. */
struct wpk_duel {
    const char *work; /* as of a trial */
    const char *op;
    const char *layouts;
    const char *const *paths; /* [count] shared objects, or "onednn" for the vendor */
    int count;
    const struct wpk_policy *policy;
    int round_count;
};

/*   owns    caller closes; children die with the engine
 *   errors  WPK_ESYSTEM, WPK_ENOENT (programs missing) */
wpk_err wpk_engine_open(const struct wpk_engine_options *options, struct wpk_engine **out,
                        struct wpk_diag *diag);
void wpk_engine_close(struct wpk_engine *engine);

/* Descriptor that becomes readable when wpk_engine_advance has something to do. */
int wpk_engine_fd(const struct wpk_engine *engine);
/* Moves every trial as far as it goes without waiting; `timeout_ms` to the next own deadline is
 * returned in *next_ms (UINT64_MAX: none).
 *   errors  WPK_ENOSPC, WPK_ESYSTEM, ...  what it needs is missing: room in work_dir, a program
 *           that starts. Candidates cannot make it fail, and what was under way has no outcome */
wpk_err wpk_engine_advance(struct wpk_engine *engine, uint64_t *next_ms);
/* Why it failed; empty text while it has not. */
const struct wpk_diag *wpk_engine_failure(const struct wpk_engine *engine);

/* One that wants more threads than there are cores, or what this engine does not do, ends
 * WPK_OUTCOME_UNSUPPORTED.
 *   errors  WPK_ENOSPC  WPK_ENGINE_TRIALS_MAX reached */
wpk_err wpk_engine_put(struct wpk_engine *engine, const struct wpk_trial *trial);
/* The next finished trial, in the order of finishing.
 *   owns    caller calls wpk_record_fini
 *   errors  WPK_ENOENT none has finished */
wpk_err wpk_engine_take(struct wpk_engine *engine, uint64_t *id, struct wpk_record *out);
/* The trial that is with the runner; 0: none, or a duel. */
uint64_t wpk_engine_running(const struct wpk_engine *engine);
/* How long it has been waiting for the device that another engine has; 0: it does not. */
uint64_t wpk_engine_device_wait_ns(const struct wpk_engine *engine);

/* Re-time kept artifacts interleaved round by round, each in the same process conditions. It goes
 * on with wpk_engine_advance, and no trial is run meanwhile.
 *   errors  WPK_EUNSUPPORTED more threads than there are cores, or it runs nothing
 *           WPK_EBUSY        a trial is with the runner, or another duel */
wpk_err wpk_engine_duel_begin(struct wpk_engine *engine, const struct wpk_duel *duel,
                              struct wpk_diag *diag);
/* How it ended.
 *   shape   timing [count]; sample_count is 0 for one that failed, and `diag` says why of the last
 *           of those
 *   errors  WPK_EBUSY        it goes on
 *           WPK_EUNSUPPORTED nobody could be timed; those of wpk_engine_advance */
wpk_err wpk_engine_duel_end(struct wpk_engine *engine, struct wpk_timing *timing,
                            struct wpk_diag *diag);
/* Both, waiting for what is being run and for the end. */
wpk_err wpk_engine_duel(struct wpk_engine *engine, const struct wpk_duel *duel,
                        struct wpk_timing *timing, struct wpk_diag *diag);

#endif
