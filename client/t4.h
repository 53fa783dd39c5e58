/* SPDX-License-Identifier: Apache-2.0 */
/* A search's trials in the T4 format, version 1.0.0, by which autotuners exchange results. */
#ifndef WPK_CLIENT_T4_H
#define WPK_CLIENT_T4_H

#include "client/trial_list.h"
#include "common/err.h"
#include "search/space.h"

#define WPK_T4_SIZE_MAX ((size_t)64 << 20) /* bytes of a document */

/* Append the candidates of the list as a T4 document: a configuration has a member for each gene;
 * what was raced out has `timeout` as its invalidity, and the time so far.
 *   source  T4 results schema 1.0.0 of the autotuning community's TuningSchema, which Kernel Tuner
 *           writes and reads
 *   errors  WPK_ENOMEM */
wpk_err wpk_t4_encode(const struct wpk_trial_list *list, struct wpk_buf *out);

/* Read a T4 document of an operator of this job file, and make standard input an export with its
 * correct trials as hints. `op` NULL: the job's only operator.
 *   errors  WPK_EINVAL a file that cannot be read, no such operator, a configuration that the
 *           operator does not have: `diag` has file, line and field; WPK_ESYSTEM */
wpk_err wpk_import_t4(const char *path, const char *job_path, const char *op,
                      struct wpk_diag *diag);

#endif
