/* SPDX-License-Identifier: Apache-2.0 */
/* The trials of one operator of a job, as numbers. */
#ifndef WPK_CLIENT_TRIAL_LIST_H
#define WPK_CLIENT_TRIAL_LIST_H

#include "client/session.h"

struct wpk_trial_list {
    const char *job;             /* id */
    const char *op;              /* name of the operator in the job */
    struct wpk_api_trial *trial; /* [count], in the order of the asks; in the arena */
    int count;
};

/* Fetch the trials of an operator: of the job with this id if `job` is one, else of the newest
 * job that has an operator of this name. `op` NULL: the job's only operator.
 *   errors  WPK_ENOENT no such job or operator, with what there is in `diag`; WPK_EINVAL the job
 *           has several operators; those of wpk_list_fetch */
wpk_err wpk_trial_list_fetch(struct wpk_session *session, const char *job, const char *op,
                             struct wpk_arena *arena, struct wpk_trial_list *out,
                             struct wpk_diag *diag);

/* The fastest candidate of our own that was timed whole, by its ratio; -1: none. */
int wpk_trial_list_best(const struct wpk_trial_list *list);

/* True if the trial is timed, and the time is no lower bound. */
bool wpk_trial_is_timed(const struct wpk_api_trial *trial);

/* The value of a gene in a candidate's text, "" where it has none.
 *   shape   out [size] */
void wpk_trial_gene(const char *candidate, const char *gene, char *out, size_t size);

/* A search's trials in the T4 format, version 1.0.0, by which autotuners exchange results. */

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
