/* SPDX-License-Identifier: Apache-2.0 */
/* Stored jobs: the content of their files, decoded once, and their progress. Writes belong to a
 * batch (store.h), whose commit reports failures; reads outside of a batch see the last commit. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_JOB_H
#define WPK_COORDINATOR_STORE_HISTORY_JOB_H

#include "common/arena.h"
#include "common/buf.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/store.h"

/* The stored state of a job's operator. */
struct wpk_history_op {
    enum wpk_phase phase;
    uint64_t kernel_id;
    bool from_history;
    char reason[WPK_REASON_MAX];
};

struct wpk_history_op_row {
    uint64_t job_number;
    uint32_t position;
    uint64_t search_id; /* 0: none yet */
    struct wpk_history_op op;
};

/* ---- writing */

/* Store a job with its operators. */
void wpk_history_put_job(struct wpk_store *store, const struct wpk_job_entry *job);
/* `document`: the job's resource once it has ended, else "" */
void wpk_history_set_job(struct wpk_store *store, const struct wpk_job_entry *job,
                         const char *document);
void wpk_history_set_op(struct wpk_store *store, const struct wpk_history_op_row *row);

/* ---- reading */

uint64_t wpk_history_job_number_next(struct wpk_store *store);

/* Get the numbers of at most `max` jobs that have not ended, oldest first; returns how many. */
uint32_t wpk_history_live_jobs(struct wpk_store *store, uint64_t *out, uint32_t max);

/* Read a job that has not ended, for the start.
 *   owns    caller frees
 *   NULL    no such job, or a failure, which is the store's status */
struct wpk_job_entry *wpk_history_read_job(struct wpk_store *store, uint64_t number);
/* Read the phases of the job's operators, as of the time before the store was opened. */
void wpk_history_read_progress(struct wpk_store *store, struct wpk_job_entry *job);

/* Read the state of an operator; false when there is none. */
WPK_MUST_CHECK bool wpk_history_op(struct wpk_store *store, uint64_t job_number, uint32_t position,
                                   struct wpk_history_op *out);

/* Get the number of a job, and the names of its operators, as texts in `arena`.
 *   shape   names [WPK_JOB_OPS_MAX]
 *   errors  WPK_ENOENT no such job; WPK_ENOMEM */
wpk_err wpk_history_op_names(struct wpk_store *store, const char *id, struct wpk_arena *arena,
                             const char **names, uint32_t *count, uint64_t *number);

/* Read the state of a job; false when there is none. */
WPK_MUST_CHECK bool wpk_history_job_state(struct wpk_store *store, const char *id,
                                          enum wpk_job_state *out);
/* Append the document of an ended job, and get its number; false when there is none. */
WPK_MUST_CHECK bool wpk_history_job_document(struct wpk_store *store, const char *id,
                                             struct wpk_buf *out, uint64_t *number);

/* Append what prune left of a job, a GoneJob of openapi.yaml; false when there is nothing.
 *   shape  says [size]: a sentence about it */
WPK_MUST_CHECK bool wpk_history_gone_job(struct wpk_store *store, const char *id,
                                         struct wpk_buf *out, char *says, size_t size);

/* Call `fn` for each job of a page, newest first, with numbers below `before`. Live jobs have no
 * document. Returns the last number, 0 when there are no more. */
typedef void (*wpk_history_listed_fn)(void *user, uint64_t number, const char *id,
                                      const char *state, const char *document);
uint64_t wpk_history_list_jobs(struct wpk_store *store, uint64_t before, const char *state,
                               int page_size, wpk_history_listed_fn fn, void *user);

#endif
