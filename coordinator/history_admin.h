/* SPDX-License-Identifier: Apache-2.0 */
/* What operators and clients do to the history, as against what searches put there: tokens, the
 * audit log, pins, requests that may be repeated. Rules as in history.h. */
#ifndef WPK_COORDINATOR_HISTORY_ADMIN_H
#define WPK_COORDINATOR_HISTORY_ADMIN_H

#include "coordinator/history.h"

/* Where a kernel's time comes from: the last measurement of its trial. Zeroed: not known. */
struct wpk_history_origin {
    uint64_t trial_id;
    uint64_t measured_at;
    char worker[WPK_ID_MAX];
};
void wpk_history_origin(struct wpk_store *store, uint64_t problem_id, const char *provider,
                        const char *candidate, struct wpk_history_origin *out);

/* What names a job's operators: its document, or the job file while it has none; appended. */
WPK_MUST_CHECK bool wpk_history_job_text(struct wpk_store *store, const char *id,
                                         struct wpk_buf *out, uint64_t *number);

/* A row of the table `kernel`; texts live until the store's next step. */
struct wpk_kernel_row {
    uint64_t id;
    uint64_t problem_id;
    bool served;
    bool pinned;
    uint64_t revoked_at; /* 0: it was not */
    const char *revoked_reason;
    const char *verified_by;
    const char *manifest;
    const char *signature;
    const char *document;
};

typedef void (*wpk_kernel_row_fn)(void *user, const struct wpk_kernel_row *row);
/* Call `fn` with that kernel; false when there is none. */
bool wpk_history_read_kernel(struct wpk_store *store, uint64_t id, wpk_kernel_row_fn fn,
                             void *user);
/* Every kernel of the same problem, newest first, with ids below `before`; returns the last id, 0
 * when there are no more. */
uint64_t wpk_history_kernel_line(struct wpk_store *store, uint64_t id, uint64_t before,
                                 int page_size, wpk_kernel_row_fn fn, void *user);

#endif
