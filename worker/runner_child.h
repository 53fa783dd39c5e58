/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's view of a child that runs candidates: fork, relay, deadline, end.
 *
 * A child on a CPU runs one candidate. One on a GPU keeps its context, says "ready", and is then
 * given candidates of one op, until one of them fails. */
#ifndef WPK_WORKER_RUNNER_CHILD_H
#define WPK_WORKER_RUNNER_CHILD_H

#include "worker/engine_message.h"
#include "worker/process.h"

struct wpk_runner_options;

/* = {0} is none. */
struct wpk_runner_child {
    pid_t pid; /* 0: no child, or this is the child */
    uint64_t id;
    char work[WPK_ENGINE_MESSAGE_WORK_SIZE];
    int count;                  /* records in its result */
    struct wpk_channel channel; /* the runner's end */
    int log;                    /* a file in memory: the child's standard error */
    uint64_t deadline_ns;       /* moved by the time for which the child waits for go */
    uint64_t waiting_ns;        /* since when the child waits for go; 0: it does not */
    const char *doing;          /* the child's step, for the log of a crash; static */
    bool reported;              /* its result was passed on, or it has none to send */
    char *op;                   /* owned; of all its candidates; NULL: it runs one and ends */
    bool ready;                 /* it has said so, and has not been given a candidate since */
    bool started;               /* it has said so once */
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
WPK_MUST_CHECK wpk_err wpk_runner_child_keep(struct wpk_runner_child *child, const char *op);
/* Give a child that is ready a candidate: `text` is the message that asks for it. */
void wpk_runner_child_give(struct wpk_runner_child *child, uint64_t id, const char *work,
                           uint64_t timeout_ns, const struct wpk_buf *text);

/* In the child: note for the runner that the anchor runs from now on, or no longer. What ends the
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
/* Kill the child if its time is up; returns the milliseconds until then, or -1. */
int wpk_runner_child_deadline(struct wpk_runner_child *child, uint64_t now_ns);
/* Reap the child. True if its result was passed on; else outcome and log of `record` say how the
 * child ended. */
bool wpk_runner_child_end(struct wpk_runner_child *child, struct wpk_record *record);

#endif
