/* SPDX-License-Identifier: Apache-2.0 */
/* A search's trials in the T4 format, version 1.0.0, by which autotuners exchange results. */
#ifndef WPK_CLIENT_T4_H
#define WPK_CLIENT_T4_H

#include "client/trial_list.h"

/* Append the candidates of the list as a T4 document: a configuration has a member for each gene;
 * what was raced out has `timeout` as its invalidity, and the time so far.
 *   source  T4 results schema 1.0.0 of the autotuning community's TuningSchema, which Kernel Tuner
 *           writes and reads
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_t4_encode(const struct wpk_trial_list *list, struct wpk_buf *out);

#endif
