/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as the store has them: what their files say, read once, and what became of them. Writes
 * belong to a batch (store.h), whose commit reports their failures; reads outside of one see the
 * last commit. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_JOB_H
#define WPK_COORDINATOR_STORE_HISTORY_JOB_H

#include "common/buf.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/store.h"

/* What is stored of a job's operator. */
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

/* What `source`, the job's file, was understood to say is stored with it. */
void wpk_history_put_job(struct wpk_store *store, const struct wpk_job_entry *job,
                         const char *source);
/* `document`: the job's resource once it has ended, else "" */
void wpk_history_set_job(struct wpk_store *store, const struct wpk_job_entry *job,
                         const char *document);
void wpk_history_set_op(struct wpk_store *store, const struct wpk_history_op_row *row);
/* Every operator of the job that has not ended has failed. */
void wpk_history_fail_ops(struct wpk_store *store, const struct wpk_job_entry *job);

/* ---- reading */

uint64_t wpk_history_job_number_next(struct wpk_store *store);

/* Numbers of the jobs that have not ended, oldest first: at most `max`; how many. */
uint32_t wpk_history_live_jobs(struct wpk_store *store, uint64_t *out, uint32_t max);

/* A job that has not ended, for the start. Where its file was understood by another version of the
 * schema, `source` is a copy of that, and the job has no operators yet; else it is NULL.
 *   owns    caller frees both
 *   NULL    there is none, or the store says why not */
struct wpk_job_entry *wpk_history_read_job(struct wpk_store *store, uint64_t number, char **source);
/* How far the operators of the job have come, before the store was opened. */
void wpk_history_read_progress(struct wpk_store *store, struct wpk_job_entry *job);

/* False when there is none. */
WPK_MUST_CHECK bool wpk_history_op(struct wpk_store *store, uint64_t job_number, uint32_t position,
                                   struct wpk_history_op *out);

/* False when there is no such job. */
WPK_MUST_CHECK bool wpk_history_job_state(struct wpk_store *store, const char *id,
                                          enum wpk_job_state *out);
/* The document of a job that has ended, appended, and its number. */
WPK_MUST_CHECK bool wpk_history_job_document(struct wpk_store *store, const char *id,
                                             struct wpk_buf *out, uint64_t *number);

/* A page of jobs, newest first, with numbers below `before`: calls `fn` for each. Live ones have
 * no document. Returns the last number, 0 when there are no more. */
typedef void (*wpk_history_listed_fn)(void *user, uint64_t number, const char *id,
                                      const char *state, const char *document);
uint64_t wpk_history_list_jobs(struct wpk_store *store, uint64_t before, const char *state,
                               int page_size, wpk_history_listed_fn fn, void *user);

#endif
