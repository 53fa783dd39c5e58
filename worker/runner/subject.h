/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate inside its child process: its provider, loaded with one input set, and its output. */
#ifndef WPK_WORKER_RUNNER_SUBJECT_H
#define WPK_WORKER_RUNNER_SUBJECT_H

#include "worker/measure.h"
#include "worker/runner/guard.h"
#include "worker/runner/runner.h"

/* A provider with the inputs set and the constants prepared. = {0} is closed. */
struct wpk_subject {
    const struct wpk_program *program;
    const struct wpk_program *view; /* the same with one output, which is compared */
    struct wpk_guard guard;
    struct wpk_provider *provider;
    int output;   /* id of the output tensor that is compared */
    void *result; /* owned; the output of the last run, dense */
};

struct wpk_subject_options {
    const char *provider; /* name of the class */
    const char *artifact;
    const char *layouts;
    int threads;
    enum wpk_guard_placement placement;
    const struct wpk_program *view; /* borrowed; NULL: the first output is compared */
    const bool *excluded;           /* borrowed; of a vendor's algorithms: see provider.h */
};

/* Open the provider, set inputs and constants, and prepare.
 *   owns    caller calls wpk_subject_close; `program` is borrowed until then
 *   errors  those of the provider; WPK_EUNSUPPORTED no such provider */
wpk_err wpk_subject_open(struct wpk_subject *subject, const struct wpk_program *program,
                         const struct wpk_subject_options *options, const struct wpk_inputs *inputs,
                         struct wpk_diag *diag);
void wpk_subject_close(struct wpk_subject *subject);

/* True if the provider runs on memory of any alignment that its elements allow. */
bool wpk_subject_moves(const struct wpk_subject *subject);
/* Move inputs and outputs to `placement`, if the provider can, and set the inputs; constants stay
 * prepared.
 *   errors  WPK_ENOMEM */
wpk_err wpk_subject_move(struct wpk_subject *subject, enum wpk_guard_placement placement,
                         const struct wpk_inputs *inputs, struct wpk_diag *diag);

/* For each draw of the set's inputs: poison the output, run once, check for writes elsewhere, and
 * compare. The first draw's inputs are set before and afterwards. A wrong result is not an error:
 * see errors->ratio.
 *   errors  WPK_ECORRUPT the kernel wrote where it must not; the error that run returned */
wpk_err wpk_subject_verify(struct wpk_subject *subject, const struct wpk_answers *answers,
                           const struct wpk_verify_rule *rule, struct wpk_verify_errors *errors,
                           struct wpk_diag *diag);

/* Say why the last run failed. */
void wpk_subject_trouble(const struct wpk_subject *subject, struct wpk_diag *diag);

/* The argument with which wpk_measure() times the subject. */
struct wpk_measure_subject wpk_subject_measured(struct wpk_subject *subject);
/* Run once on the inputs that are set; `user` is the subject. */
wpk_err wpk_subject_run(void *user);
/* Measure `count` runs on the device's own clock. */
wpk_err wpk_subject_time(void *user, int count, uint64_t *ns);
wpk_err wpk_subject_cool(void *user, enum wpk_conditions conditions);

/* The outcome of a candidate whose provider returned `err`. */
enum wpk_outcome wpk_subject_outcome(wpk_err err);

#endif
