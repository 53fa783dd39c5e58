/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that the runner knows: program, input sets, answers.
 *
 * Computing answers takes up to seconds. A child process for each set computes them into a file,
 * which a later runner finds again. */
#ifndef WPK_WORKER_RUNNER_RUNNER_OPS_H
#define WPK_WORKER_RUNNER_RUNNER_OPS_H

#include "common/crypto.h"
#include "worker/runner/faults.h"
#include "worker/runner/runner.h"

#include <poll.h>
#include <sys/types.h>

#define WPK_RUNNER_OPS_MAX 8
#define WPK_RUNNER_SET_TRIES_MAX 2
/* Of one try of one set: several times what the largest op takes. */
#define WPK_RUNNER_SET_CPU_SECONDS_MAX 100
/* All answers of an op, where a single core computes them. */
#define WPK_RUNNER_ANSWERS_SECONDS_MAX                                                             \
    (WPK_RUNNER_SETS * WPK_RUNNER_SET_TRIES_MAX * WPK_RUNNER_SET_CPU_SECONDS_MAX)

struct wpk_runner_set {
    pid_t pid; /* of the child that computes the answers; 0: none */
    int fd;    /* readable when that child has ended */
    int tries; /* that failed */
    bool ready;
    struct wpk_answers answers;
    struct wpk_inputs inputs;
};

struct wpk_runner_known {
    char hash[WPK_SHA256_HEX_SIZE]; /* of the op's text; empty: this place is free */
    uint64_t used;                  /* number of the last use; the smallest is forgotten first */
    struct wpk_program program;
    struct wpk_runner_set sets[WPK_RUNNER_SETS];
    /* copies of the sets' members, in the form of struct wpk_runner_op */
    struct wpk_answers answers[WPK_RUNNER_SETS];
    struct wpk_inputs inputs[WPK_RUNNER_SETS];
    bool ready; /* all sets are ready, and `unseen` is filled */
    char unseen[WPK_FAULTS_TEXT_MAX];
};

struct wpk_runner_ops {
    const char *directory;
    uint64_t used;
    struct wpk_runner_known known[WPK_RUNNER_OPS_MAX];
};

void wpk_runner_ops_init(struct wpk_runner_ops *ops, const char *directory);

/* Fill `out` with what candidates of this op are verified with; start computing it if need be.
 * `out` is valid until the next call.
 *   errors  WPK_EBUSY the answers are being computed; WPK_EUNSUPPORTED they cannot be computed;
 *           WPK_EPARSE, WPK_ENOMEM; WPK_ESYSTEM no process can be started */
wpk_err wpk_runner_ops_get(struct wpk_runner_ops *ops, const char *text, struct wpk_runner_op *out,
                           struct wpk_diag *diag);

/* How long a candidate of the op may take, of which `timeout_ms` is for an op whose runs take no
 * time. It is verified and timed in some 20 runs, and at most three times as long. */
uint64_t wpk_runner_ops_timeout_ms(const struct wpk_program *program, uint64_t timeout_ms);

/* Fill `out` with the descriptors of computing children, to be polled; returns how many. */
int wpk_runner_ops_poll(const struct wpk_runner_ops *ops, struct pollfd *out, int max);
/* Load the answers of children that have ended. */
void wpk_runner_ops_collect(struct wpk_runner_ops *ops);

#endif
