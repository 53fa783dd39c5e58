/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/worker_order.h"

#include "coordinator/state/state.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker.h"

#include <string.h>

static const char *const order_names[] = {WPK_WORKER_ORDER_LIST(WPK_LIST_TEXT)};

const char *wpk_worker_order_name(enum wpk_worker_order order)
{
    WPK_ASSERT(order < WPK_WORKER_ORDER_COUNT);
    return order_names[order];
}

wpk_err wpk_worker_order_parse(const char *text, enum wpk_worker_order *out)
{
    for (int i = 0; i < WPK_WORKER_ORDER_COUNT; i++) {
        if (strcmp(order_names[i], text) == 0) {
            *out = (enum wpk_worker_order)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

bool wpk_worker_order_is_for(const struct wpk_worker *worker, const char *name)
{
    return strcmp(worker->hello.name, name) == 0 ||
           strcmp(worker->hello.device.instance, name) == 0;
}

wpk_err wpk_worker_order_check(const struct wpk_coordinator *c, const char *name,
                               enum wpk_worker_order order)
{
    bool ordered = wpk_table_get_text(&c->orders, name) != NULL;
    bool known = ordered;
    for (uint32_t i = 0; i < c->worker_count && !known; i++) {
        known = wpk_worker_order_is_for(c->workers[i], name);
    }
    if (!known) {
        return WPK_ENOENT;
    }
    bool full = !ordered && c->orders.count == WPK_ORDERS_MAX;
    return full && order != WPK_WORKER_ORDER_NONE ? WPK_ENOSPC : WPK_OK;
}

/* By its name, or by its device, which stays the same whatever name the worker has next. */
void wpk_worker_order_find(const struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_order_entry *entry = wpk_table_get_text(&c->orders, worker->hello.name);
    const struct wpk_order_entry *of_device =
        wpk_table_get_text(&c->orders, worker->hello.device.instance);
    if (entry == NULL || (of_device != NULL && of_device->order > entry->order)) {
        entry = of_device;
    }
    worker->order = entry != NULL ? entry->order : WPK_WORKER_ORDER_NONE;
    worker->order_reason = entry != NULL ? entry->reason : "";
}
