/* SPDX-License-Identifier: Apache-2.0 */
/* Testing whether the input sets of an op would show that a stage is wrong. The faults of each
 * stage (ir/derive/fault.h) are evaluated at some compared points of each set. A set shows a fault
 * that moves a point by more than WPK_FAULTS_CLEAR tolerances, a neighbour's value along each axis.
 * While some fault is unseen, more sets join (WPK_INPUT_JOINING). Records name the faults that no
 * set shows. */
#ifndef WPK_WORKER_RUNNER_FAULTS_H
#define WPK_WORKER_RUNNER_FAULTS_H

#include "worker/verify/answers.h"

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

#endif
