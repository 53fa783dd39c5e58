/* SPDX-License-Identifier: Apache-2.0 */
/* Could the input sets of an op show that a stage is wrong? For each stage its faults (op/fault.h)
 * are evaluated at some compared points of each set: one that moves a point by more than
 * WPK_FAULTS_CLEAR tolerances is seen, a neighbour's value if it is along each axis. While some are
 * not, more sets join (WPK_INPUT_JOINING). What stays unseen is said in the record. */
#ifndef WPK_WORKER_FAULTS_H
#define WPK_WORKER_FAULTS_H

#include "worker/answers.h"

#define WPK_FAULTS_CLEAR 4.0
#define WPK_FAULTS_TEXT_MAX 2048

/* Fill answers->seen; what takes too long to evaluate is not seen.
 *   errors  WPK_ENOMEM */
wpk_err wpk_faults_look(const struct wpk_program *op, struct wpk_answers *answers);

/* Is a set of this kind among those of the op? The kinds that join are where a fault is unseen on
 * the sets before.
 *   shape   answers [kind] */
bool wpk_faults_ask_for(const struct wpk_program *op, const struct wpk_answers *answers,
                        enum wpk_input_kind kind);

/* "M: identity; S: first term dropped", or "".
 *   shape   answers [set_count]; out [WPK_FAULTS_TEXT_MAX], cut where there are more */
void wpk_faults_unseen(const struct wpk_program *op, const struct wpk_answers *answers,
                       int set_count, char *out);

/* The same for the first `set_count` kinds of inputs, as far as they are asked for, drawn from
 * `seed`, at `sample_count` points of each.
 *   errors  of wpk_answers_make */
wpk_err wpk_faults_find(const struct wpk_program *op, uint64_t seed, int64_t sample_count,
                        int set_count, char *out, struct wpk_diag *diag);

#endif
