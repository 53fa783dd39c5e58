/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that are served, in memory, for lookups on any thread.
 *
 *      writer's thread                      loop's thread            any thread
 *      refresh(problem) ──▶ change ── commit ──▶ publish ──▶ [version] ──▶ acquire ... release
 *                                │
 *                                └─ the commit failed ──▶ discard
 *
 * A version never changes: a new one is made of arrays of pointers, and shares the entries that
 * stayed as they were. So a reader sees one state from acquire to release, and waits for nobody. */
#ifndef WPK_COORDINATOR_INDEX_H
#define WPK_COORDINATOR_INDEX_H

#include "coordinator/store.h"

struct wpk_index;
struct wpk_index_change;

/*   owns    caller frees; every version has to be released before
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_index_new(struct wpk_index **out);
void wpk_index_free(struct wpk_index *index);

/* Read everything that is served, and publish it: at the start, and after the store failed.
 *   errors  WPK_ENOMEM; what the store says */
WPK_MUST_CHECK wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store,
                                      struct wpk_diag *diag);

/* What `problem_id` serves now, as the batch under way leaves it. To be published once that is
 * durable, else discarded; changes are published in the order in which they were made.
 *   owns    the change is taken by publish or discard; NULL (which both accept) after a failure of
 *           the store, which fails the batch */
struct wpk_index_change *wpk_index_refresh(struct wpk_index *index, struct wpk_store *store,
                                           uint64_t problem_id);
void wpk_index_publish(struct wpk_index *index, struct wpk_index_change *change);
void wpk_index_discard(struct wpk_index_change *change);

#endif
