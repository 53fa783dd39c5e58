/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's view of a child that runs candidates: fork, relay, deadline, end.
 *
 * A child on a CPU runs one candidate. One on a GPU keeps its context, says "ready", and is then
 * given candidates of one op, until one of them fails.
 *
 *     on a CPU                         fork ──▶ RUNNING ◀──go── WAITING
 *                                                 │ ▲ ──verified──▶
 *     on a GPU   fork ──▶ STARTING ──▶ READY ─────┘ │
 *                                        ◀──ready───┘
 *
 * The time of STARTING and RUNNING is limited; behind the limit the child is killed and is DYING,
 * which has a limit, too: a driver may not let go of a process. */
#ifndef WPK_WORKER_RUNNER_RUNNER_CHILD_H
#define WPK_WORKER_RUNNER_RUNNER_CHILD_H

#include "common/err.h"
#include "worker/engine_message.h"
#include "worker/process.h"

#include <stdbool.h>

struct wpk_runner_options;

enum wpk_runner_child_state {
    WPK_RUNNER_CHILD_NONE,
    WPK_RUNNER_CHILD_STARTING, /* makes a context */
    WPK_RUNNER_CHILD_READY,    /* waits for a candidate */
    WPK_RUNNER_CHILD_RUNNING,
    WPK_RUNNER_CHILD_WAITING, /* its candidate waits for "go" */
    WPK_RUNNER_CHILD_DYING,
};

/* = {0} is none. */
struct wpk_runner_child {
    pid_t pid; /* 0: no child, or this is the child */
    uint64_t id;
    char work[WPK_ENGINE_MESSAGE_WORK_SIZE];
    int count;                  /* records in its result */
    struct wpk_channel channel; /* the runner's end */
    int log;                    /* a file in memory: the child's standard error */
    enum wpk_runner_child_state state;
    uint64_t deadline_ns; /* of STARTING, RUNNING or DYING; moved by the time of WAITING */
    uint64_t waiting_ns;  /* WAITING: since when */
    const char *doing;    /* the child's step, for the log of a crash; static */
    bool reported;        /* its result was passed on, or it has none to send */
    char *op;             /* owned; of all its candidates; NULL: it runs one and ends */
    bool started;         /* it was READY once */
    bool timed_out;
    bool damaged; /* killed because of a message that makes no sense */
};

/* Fork; returns in both processes. In the child `pid` is 0, limits are set, *channel is the child's
 * own, and the engine's channel is closed.
 *   errors  WPK_ESYSTEM, in the parent only */
wpk_err wpk_runner_child_fork(struct wpk_runner_child *child, uint64_t id, int count,
                              uint64_t timeout_ns, const struct wpk_child_limits *limits,
                              struct wpk_channel *channel);

/* Keep a child for more candidates of the op; it has none yet.   errors  WPK_ENOMEM */
wpk_err wpk_runner_child_keep(struct wpk_runner_child *child, const char *op);
/* Give a child that is ready a candidate: `text` is the message that asks for it. */
void wpk_runner_child_give(struct wpk_runner_child *child, uint64_t id, const char *work,
                           uint64_t timeout_ns, const struct wpk_buf *text);

/* In the child: note for the runner that the anchor runs from now on, or no longer. An end of the
 * child while the anchor runs counts as the anchor's failure, not the candidate's. */
void wpk_runner_child_set_anchor(bool runs);

/* True if a failure was that of a GPU which is not there any more: that is told to the engine
 * instead. It takes a moment, and is asked after each failure that may have been one.
 *   shape   records [count] */
bool wpk_runner_child_lost_gpu(const struct wpk_runner_options *options,
                               const struct wpk_record *records, int count,
                               struct wpk_channel *engine);
/* Pass the child's messages on to `to`, but a result that is none of the candidate's.
 *   errors  WPK_ECLOSED the child has ended; those of wpk_channel_send */
wpk_err wpk_runner_child_relay(struct wpk_runner_child *child,
                               const struct wpk_runner_options *options, struct wpk_channel *to);
/* Pass "go" on to the child; no effect when the child does not wait for it. */
void wpk_runner_child_go(struct wpk_runner_child *child, const struct wpk_buf *text);
/* The milliseconds until the child's time is up; -1: no time is limited. */
int wpk_runner_child_left_ms(const struct wpk_runner_child *child, uint64_t now_ns);
/* Kill the child if its time is up. Call it when messages have been read: one of them may begin
 * another state. True if the child was killed and its channel is still open though it had the time
 * to disappear: it is to be ended. */
bool wpk_runner_child_expire(struct wpk_runner_child *child,
                             const struct wpk_runner_options *options, uint64_t now_ns);
/* Kill and reap the child, and reset it. *reported: its result was passed on; else outcome and log
 * of `record` say how the child ended.
 *   errors  WPK_ETIMEDOUT the process does not disappear; it is given up, nothing is reported, and
 *           the engine was told over `engine` that the runner is broken */
wpk_err wpk_runner_child_end(struct wpk_runner_child *child,
                             const struct wpk_runner_options *options, struct wpk_channel *engine,
                             bool *reported, struct wpk_record *record);

/* Whether a GPU is there at all. A process whose device was lost does not get it back: a new one
 * asks. */

/* Let a child of this process, which must not have used a driver, make a context on the GPU.
 *   errors  WPK_ENOENT it cannot, and `diag` has the reason. A driver that does not answer,
 *           and a process that cannot be made, are no errors. */
wpk_err wpk_gpu_probe(bool emulated, struct wpk_diag *diag);

/* Make a context on the GPU that stays as long as this process, for all of its kernels. The first
 * kernel tells of a failure. */
void wpk_gpu_keep_context(bool emulated);

/* Taking the network away from this process and from all processes that it will start. */

/* Refuse the system call `socket` with EACCES from now on, for local sockets too, and enter a new
 * network namespace where the system permits it. Open descriptors stay open, and socketpair works.
 * Returns false on failure: the caller must then not run untrusted code. */
bool wpk_isolate_from_network(void);

#endif
