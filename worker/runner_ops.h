/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that the runner knows: program, input sets, answers.
 *
 * Answers take up to seconds: processes of their own compute them, one for each set, into files
 * that a later runner finds again. */
#ifndef WPK_WORKER_RUNNER_OPS_H
#define WPK_WORKER_RUNNER_OPS_H

#include "common/crypto.h"
#include "worker/faults.h"
#include "worker/runner.h"

#include <poll.h>
#include <sys/types.h>

#define WPK_RUNNER_OPS_MAX 8

struct wpk_runner_set {
    pid_t pid; /* of who computes it; 0: nobody */
    int fd;    /* readable when that one has ended */
    int tries; /* failed */
    bool ready;
    struct wpk_answers answers;
    struct wpk_inputs inputs;
};

struct wpk_runner_known {
    char hash[WPK_SHA256_HEX_SIZE]; /* of the op's text; empty: free place */
    uint64_t used;                  /* grows; the smallest is forgotten first */
    struct wpk_program program;
    struct wpk_runner_set sets[WPK_RUNNER_SETS];
    /* the same, as candidates want them */
    struct wpk_answers answers[WPK_RUNNER_SETS];
    struct wpk_inputs inputs[WPK_RUNNER_SETS];
    bool ready; /* all sets are; then: */
    char unseen[WPK_FAULTS_TEXT_MAX];
};

struct wpk_runner_ops {
    const char *directory;
    uint64_t used;
    struct wpk_runner_known known[WPK_RUNNER_OPS_MAX];
};

void wpk_runner_ops_init(struct wpk_runner_ops *ops, const char *directory);

/* What to hold a candidate of this op against; begins to compute it if need be. `out` stays valid
 * until the next call.
 *   errors  WPK_EBUSY being computed; WPK_EPARSE; WPK_EUNSUPPORTED cannot be had; WPK_ENOMEM;
 *           WPK_ESYSTEM the machine has no process for it */
wpk_err wpk_runner_ops_get(struct wpk_runner_ops *ops, const char *text, struct wpk_runner_op *out,
                           struct wpk_diag *diag);

/* Descriptors of who computes, to be polled; returns how many. */
int wpk_runner_ops_poll(const struct wpk_runner_ops *ops, struct pollfd *out, int max);
/* Take in what has been computed. */
void wpk_runner_ops_collect(struct wpk_runner_ops *ops);

#endif
