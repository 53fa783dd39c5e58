/* SPDX-License-Identifier: Apache-2.0 */
/* One candidate inside its child process: its provider, loaded with one input set, its output. */
#ifndef WPK_WORKER_SUBJECT_H
#define WPK_WORKER_SUBJECT_H

#include "worker/guard.h"
#include "worker/runner.h"

/* A provider with the inputs set and the constants prepared. = {0} is closed. */
struct wpk_subject {
    const struct wpk_program *program;
    struct wpk_guard guard;
    struct wpk_provider *provider;
    int output;   /* tensor id */
    void *result; /* owned; dense output of the last read */
};

struct wpk_subject_options {
    const char *provider; /* name of the class */
    const char *artifact;
    const char *layouts;
    int threads;
    enum wpk_guard_placement placement;
};

/*   owns    caller calls wpk_subject_close; `program` is borrowed until then
 *   errors  of the provider; WPK_EUNSUPPORTED no such provider */
wpk_err wpk_subject_open(struct wpk_subject *subject, const struct wpk_program *program,
                         const struct wpk_subject_options *options, const struct wpk_inputs *inputs,
                         struct wpk_diag *diag);
void wpk_subject_close(struct wpk_subject *subject);

/* Does it run on memory of any alignment that its elements allow? */
bool wpk_subject_moves(const struct wpk_subject *subject);
/* Place inputs and outputs anew, if it moves, and fill the inputs; constants stay prepared.
 *   errors  WPK_ENOMEM */
wpk_err wpk_subject_move(struct wpk_subject *subject, enum wpk_guard_placement placement,
                         const struct wpk_inputs *inputs, struct wpk_diag *diag);

/* For each draw of the set's inputs, the first of which is in place: poison the output, run once,
 * look for damage, and compare. The first one is in place afterwards. A wrong result is not an
 * error: ask errors->ratio.
 *   errors  WPK_ECORRUPT wrote where it must not; what run returned */
wpk_err wpk_subject_verify(struct wpk_subject *subject, const struct wpk_answers *answers,
                           const struct wpk_verify_rule *rule, struct wpk_verify_errors *errors,
                           struct wpk_diag *diag);

/* For wpk_measure: `user` is the subject. */
wpk_err wpk_subject_run(void *user);
wpk_err wpk_subject_cool(void *user, enum wpk_conditions conditions);
/* Of all threads of this process. */
uint64_t wpk_subject_preemptions(void *user);

/* What an error of a provider means for the candidate. */
enum wpk_outcome wpk_subject_outcome(wpk_err err);

#endif
