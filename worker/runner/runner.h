/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of wpk-runner: holds the device, the input sets and the answers, and forks a child for
 * each candidate (on a GPU: for many), which may crash, hang or eat memory there.
 *
 * The runner and its children have no network (isolate.c); if that cannot be achieved, the runner
 * does not start. */
#ifndef WPK_WORKER_RUNNER_RUNNER_H
#define WPK_WORKER_RUNNER_RUNNER_H

#include "worker/engine_message.h"

/* Input sets whose answers are kept, one of each kind. All candidates of an op that are not raced
 * out face all of them, so that their errors compare. */
enum {
    WPK_RUNNER_INTEGERS = WPK_INPUT_INTEGERS,
    WPK_RUNNER_REALS = WPK_INPUT_REALS,
    WPK_RUNNER_SETS = WPK_INPUT_KINDS
};

struct wpk_runner_options {
    const char *answers_dir; /* where answers are kept from one start to the next */
    bool on_gpu, emulated;   /* what candidates run on */
    uint64_t start_ms;       /* for which a context on a GPU may take; 0: 30 s */
    uint64_t end_ms;         /* within which a killed process disappears; 0: 10 s */
};

/* Serve WPK_CHANNEL_FD until the engine closes it; returns the process's exit code. */
int wpk_runner_serve(const struct wpk_runner_options *options);

/* The data that a candidate is verified with; all candidates of an op share it. */
struct wpk_runner_op {
    const struct wpk_program *program;
    const struct wpk_answers *answers; /* [WPK_RUNNER_SETS] */
    const struct wpk_inputs *inputs;   /* [WPK_RUNNER_SETS] */
    const char *unseen;                /* faults that no set shows (runner_ops.h); "": none */
};

/* In a child: verify and time one candidate and fill `out` with its record. The child sends
 * "verified", waits for "go", and sends "timed" over the channel. */
void wpk_runner_try(const struct wpk_runner_options *options, const struct wpk_runner_op *op,
                    const struct wpk_run_request *request, struct wpk_channel *channel,
                    struct wpk_record *out);

/* In a child: time contestants in turns, each in a process of its own.   shape  out [count] */
void wpk_runner_duel(const struct wpk_runner_op *op, const struct wpk_duel_request *request,
                     struct wpk_channel *channel, struct wpk_record *out);

/* Send "verified" and wait for "go"; end the process when the runner has died. */
void wpk_runner_wait_for_go(struct wpk_channel *channel, uint64_t id);

#endif
