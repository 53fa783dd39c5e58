/* SPDX-License-Identifier: Apache-2.0 */
/* A store write that updates the index with the batch's changes of a problem's kernels. */
#include "coordinator/effects/executor_parts.h"

#include "coordinator/effects/executor.h"
#include "coordinator/index/index.h"

#include <stdlib.h>

struct index_write {
    struct wpk_store_write write;
    struct wpk_index *index;
    uint64_t problem_id;
    struct wpk_index_change *change; /* owned */
};

static void perform(struct wpk_store_write *base, struct wpk_store *store)
{
    struct index_write *write = (struct index_write *)base;
    write->change = wpk_index_refresh(store, write->problem_id);
}

static void done(struct wpk_store_write *base, wpk_err err, const struct wpk_diag *diag)
{
    struct index_write *write = (struct index_write *)base;
    (void)diag;
    if (err == WPK_OK) {
        wpk_index_publish(write->index, write->change);
    } else {
        wpk_index_discard(write->change);
    }
    free(write);
}

struct wpk_store_write *wpk_index_write_new(struct wpk_index *index, uint64_t problem_id)
{
    struct index_write *write = calloc(1, sizeof *write);
    WPK_ASSERT(write != NULL);
    *write = (struct index_write){
        .write = {.perform = perform, .done = done}, .index = index, .problem_id = problem_id};
    return &write->write;
}
