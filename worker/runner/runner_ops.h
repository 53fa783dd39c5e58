/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that the runner knows: program, input sets, answers.
 *
 * Computing answers takes up to seconds. A child process for each set computes them into a file,
 * which a later runner finds again. */
#ifndef WPK_WORKER_RUNNER_RUNNER_OPS_H
#define WPK_WORKER_RUNNER_RUNNER_OPS_H

#include "common/crypto.h"
#include "worker/runner/runner.h"
#include "worker/verify/answers.h"

#include <poll.h>
#include <sys/types.h>

/* Testing whether the input sets of an op would show that a stage is wrong. The faults of each
 * stage (ir/derive/derive.h) are evaluated at some compared points of each set. A set shows a fault
 * that moves a point by more than WPK_FAULTS_CLEAR tolerances, a neighbour's value along each axis.
 * While some fault is unseen, more sets join (WPK_INPUT_JOINING). Records name the faults that no
 * set shows. */

#define WPK_FAULTS_CLEAR 4.0
#define WPK_FAULTS_TEXT_MAX 2048

/* Fill answers->seen: the faults that some output shows on such a set. The answers are those of the
 * first output; the others' are computed here at some points. A fault that takes too long to
 * evaluate counts as unseen.
 *   errors  WPK_ENOMEM */
wpk_err wpk_faults_look(const struct wpk_program *op, struct wpk_answers *answers);

/* True if the op needs a set of this kind: always for the first kinds, and for a joining kind if
 * the sets of the kinds before it leave a fault unseen.
 *   shape   answers [kind] */
bool wpk_faults_ask_for(const struct wpk_program *op, const struct wpk_answers *answers,
                        enum wpk_input_kind kind);

/* Write the faults that no set shows: "M: identity; S: first term dropped", or "".
 *   shape   answers [set_count]; out [WPK_FAULTS_TEXT_MAX], cut where there are more */
void wpk_faults_unseen(const struct wpk_program *op, const struct wpk_answers *answers,
                       int set_count, char *out);

/* The same for the first `set_count` kinds of inputs that the op needs, drawn from `seed`, at
 * `sample_count` points of each.
 *   errors  those of wpk_answers_make */
wpk_err wpk_faults_find(const struct wpk_program *op, uint64_t seed, int64_t sample_count,
                        int set_count, char *out, struct wpk_diag *diag);

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
