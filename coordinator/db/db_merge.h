/* SPDX-License-Identifier: Apache-2.0 */
/* History of another installation into ours, by content: what is there stays as it is, what is not
 * is added; a second time nothing changes. For db_import.c.
 *
 *     a line ──▶ checked ──▶ a row of a temporary table ── the whole file was right ──▶ history
 *
 * Times of another installation are of the same device class, environment and policy, so they are
 * as good as ours; but where a candidate was measured here, ours is not changed. A kernel is served
 * where none is, or where it is faster and no other is pinned. */
#ifndef WPK_COORDINATOR_DB_DB_MERGE_H
#define WPK_COORDINATOR_DB_DB_MERGE_H

#include "common/json.h"
#include "coordinator/store/sign.h"
#include "coordinator/store/store.h"

struct wpk_db_merge {
    struct wpk_store *store; /* in a batch */
    const char *data_dir;
    const struct wpk_sign *sign;                          /* ours: whoever imports vouches for it */
    int64_t problem;                                      /* that we are in; 0: none yet */
    char fingerprint[65];                                 /* its */
    int64_t artifacts, problems, trials, kernels, served; /* that are new */
};

/* Make the temporary tables; they go with the store. Failures stick in the batch. */
void wpk_db_merge_begin(struct wpk_db_merge *m);

/* Each reads the object that `r` is in; what is wrong with it sticks in `r`. Artifacts and problems
 * are in the history from then on, the rest waits for the end. */
void wpk_db_merge_artifact(struct wpk_db_merge *m, const char *sha256, const struct wpk_buf *bytes,
                           struct wpk_json_reader *r);
void wpk_db_merge_problem(struct wpk_db_merge *m, struct wpk_json_reader *r);
void wpk_db_merge_trial(struct wpk_db_merge *m, struct wpk_json_reader *r);
void wpk_db_merge_kernel(struct wpk_db_merge *m, struct wpk_json_reader *r);

/* Trials and kernels into the history. */
void wpk_db_merge_end(struct wpk_db_merge *m);

#endif
