/* SPDX-License-Identifier: Apache-2.0 */
/* Merging another installation's history into this one, by content: existing rows stay, missing
 * rows are added, and a second import changes nothing. For db_import.c.
 *
 *     a line ──▶ checked ──▶ a row of a temporary table ── the whole file was valid ──▶ history
 *
 * Imported times have the same device class, environment and policy, so they compare with local
 * ones; but a local trial stays as it is. A kernel becomes served where none is, or where it is
 * faster and no other is pinned. */
#ifndef WPK_COORDINATOR_DB_DB_MERGE_H
#define WPK_COORDINATOR_DB_DB_MERGE_H

#include "common/json.h"
#include "coordinator/store/sign.h"
#include "coordinator/store/store.h"

struct wpk_db_merge {
    struct wpk_store *store; /* in a batch */
    const char *data_dir;
    const struct wpk_sign *sign;                          /* the local key, for new signatures */
    int64_t problem;                                      /* id of the current one; 0: none yet */
    char fingerprint[65];                                 /* of the current problem */
    int64_t artifacts, problems, trials, kernels, served, hints; /* numbers of new ones */
};

/* Make the temporary tables, which end with the store. Failures stick in the batch. */
void wpk_db_merge_begin(struct wpk_db_merge *m);

/* Read the current object of `r`; its faults are failures of `r`. Artifacts, problems and hints are
 * added to the history at once, trials and kernels by wpk_db_merge_end(). */
void wpk_db_merge_artifact(struct wpk_db_merge *m, const char *sha256, const struct wpk_buf *bytes,
                           struct wpk_json_reader *r);
void wpk_db_merge_problem(struct wpk_db_merge *m, struct wpk_json_reader *r);
void wpk_db_merge_trial(struct wpk_db_merge *m, struct wpk_json_reader *r);
void wpk_db_merge_kernel(struct wpk_db_merge *m, struct wpk_json_reader *r);
void wpk_db_merge_hint(struct wpk_db_merge *m, struct wpk_json_reader *r);

/* Add the trials and kernels to the history. */
void wpk_db_merge_end(struct wpk_db_merge *m);

#endif
