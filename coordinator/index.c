/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/index.h"

#include <stdlib.h>

struct wpk_index {
    uint64_t version;
};

struct wpk_index_change {
    uint64_t problem_id;
};

wpk_err wpk_index_new(struct wpk_index **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? WPK_OK : WPK_ENOMEM;
}

void wpk_index_free(struct wpk_index *index)
{
    free(index);
}

wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store, struct wpk_diag *diag)
{
    (void)store;
    (void)diag;
    index->version++;
    return WPK_OK;
}

struct wpk_index_change *wpk_index_refresh(struct wpk_index *index, struct wpk_store *store,
                                           uint64_t problem_id)
{
    (void)index;
    (void)store;
    struct wpk_index_change *change = calloc(1, sizeof *change);
    if (change != NULL) {
        change->problem_id = problem_id;
    }
    return change;
}

void wpk_index_publish(struct wpk_index *index, struct wpk_index_change *change)
{
    index->version += change != NULL;
    free(change);
}

void wpk_index_discard(struct wpk_index_change *change)
{
    free(change);
}
