/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's view of the child that runs a candidate: fork, relay, deadline, end. */
#ifndef WPK_WORKER_RUNNER_CHILD_H
#define WPK_WORKER_RUNNER_CHILD_H

#include "worker/message.h"
#include "worker/process.h"

/* = {0} is none. */
struct wpk_runner_child {
    pid_t pid; /* 0: none, and in the child itself */
    uint64_t id;
    char work[WPK_MESSAGE_WORK_SIZE];
    int count;                  /* records in its result */
    struct wpk_channel channel; /* ours */
    int log;                    /* its standard error, in memory */
    uint64_t deadline_ns;       /* moved by the time it waits for go */
    uint64_t waiting_ns;        /* since when it waits; 0: it works */
    const char *doing;          /* static, for the log of a crash */
    bool reported;              /* its result has passed */
    bool timed_out;
    bool damaged; /* killed for what it said */
};

/* As fork: returns twice. In the child `pid` is 0, limits are set, and `channel` is its own; the
 * engine's channel is closed.
 *   errors  WPK_ESYSTEM, in the parent only */
wpk_err wpk_runner_child_fork(struct wpk_runner_child *child, uint64_t id, int count,
                              uint64_t timeout_ns, const struct wpk_child_limits *limits,
                              struct wpk_channel *channel);

/* In the child: its search's anchor runs from now on, or no longer. The runner sees it, too:
 * whatever ends the child while its anchor runs is the anchor's fault, not the candidate's. */
void wpk_runner_child_set_anchor(bool runs);

/* Pass on what the child has said.
 *   errors  WPK_ECLOSED the child has ended; or those of sending */
wpk_err wpk_runner_child_relay(struct wpk_runner_child *child, struct wpk_channel *to);
/* Let it time; ignored when it does not wait. */
void wpk_runner_child_go(struct wpk_runner_child *child, const struct wpk_buf *text);
/* Kill it if its time is up; milliseconds until then, or -1. */
int wpk_runner_child_deadline(struct wpk_runner_child *child, uint64_t now_ns);
/* Reap it. True when it had reported; otherwise outcome and log of `record` say how it ended. */
bool wpk_runner_child_end(struct wpk_runner_child *child, struct wpk_record *record);

#endif
