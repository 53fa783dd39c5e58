/* SPDX-License-Identifier: Apache-2.0 */
/* An index that follows what a batch does to a problem's kernels. */
#include "coordinator/effects/performer.h"
#include "coordinator/index/index.h"

#include <stdlib.h>

struct index_order {
    struct wpk_order order;
    struct wpk_index *index;
    uint64_t problem_id;
    struct wpk_index_change *change; /* owned */
};

static void perform(struct wpk_order *base, struct wpk_store *store)
{
    struct index_order *order = (struct index_order *)base;
    order->change = wpk_index_refresh(store, order->problem_id);
}

static void done(struct wpk_order *base, wpk_err err, const struct wpk_diag *diag)
{
    struct index_order *order = (struct index_order *)base;
    (void)diag;
    if (err == WPK_OK) {
        wpk_index_publish(order->index, order->change);
    } else {
        wpk_index_discard(order->change);
    }
    free(order);
}

struct wpk_order *wpk_index_order_new(struct wpk_index *index, uint64_t problem_id)
{
    struct index_order *order = calloc(1, sizeof *order);
    WPK_ASSERT(order != NULL);
    *order = (struct index_order){
        .order = {.perform = perform, .done = done}, .index = index, .problem_id = problem_id};
    return &order->order;
}
