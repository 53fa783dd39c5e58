/* SPDX-License-Identifier: Apache-2.0 */
/* The trials of one operator of a job, as numbers. */
#ifndef WPK_CLIENT_TRIAL_LIST_H
#define WPK_CLIENT_TRIAL_LIST_H

#include "client/session.h"

/* Texts are in the arena. */
struct wpk_listed_trial {
    int64_t index; /* number of the ask; -1: a vendor's, or the plain kernel */
    const char *provider;
    const char *candidate;
    const char *outcome;              /* "ok", ... */
    const char *recorded;             /* date and time; "": not yet */
    bool censored;                    /* raced out: its time is a lower bound */
    double median_ns, min_ns, mad_ns; /* 0: none */
    double ratio;                     /* time over that of the search's anchor; 0: none */
    bool is_candidate;                /* of our own, and not the plain kernel */
};

struct wpk_trial_list {
    const char *job;                /* id */
    const char *op;                 /* name of the operator in the job */
    struct wpk_listed_trial *trial; /* [count], in the order of the asks; in the arena */
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
bool wpk_listed_trial_is_timed(const struct wpk_listed_trial *trial);

/* The value of a gene in a candidate's text, "" where it has none.
 *   shape   out [size] */
void wpk_listed_trial_gene(const char *candidate, const char *gene, char *out, size_t size);

#endif
