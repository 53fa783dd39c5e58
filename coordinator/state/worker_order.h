/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator orders of a worker, by its name or by its device's instance. */
#ifndef WPK_COORDINATOR_STATE_WORKER_ORDER_H
#define WPK_COORDINATOR_STATE_WORKER_ORDER_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_worker;

#define WPK_ORDERS_MAX 4096 /* workers that an operator gave an order for */

/* What an operator ordered of a worker, by its name. */
/* suffix, text */
#define WPK_WORKER_ORDER_LIST(X)                                                                   \
    X(NONE, "none")                                                                                \
    X(DRAIN, "drain")           /* finishes what it has, and gets nothing */                       \
    X(QUARANTINE, "quarantine") /* not believed any more: its results are refused */

enum wpk_worker_order {
#define WPK_WORKER_ORDER_ENUM(name, text) WPK_WORKER_ORDER_##name,
    WPK_WORKER_ORDER_LIST(WPK_WORKER_ORDER_ENUM)
#undef WPK_WORKER_ORDER_ENUM
        WPK_WORKER_ORDER_COUNT
};

/* An operator's order for a worker, whether it is there or not. */
struct wpk_order_entry {
    char name[WPK_WORKER_NAME_MAX];
    enum wpk_worker_order order; /* not NONE */
    char reason[WPK_REASON_MAX];
};

const char *wpk_worker_order_name(enum wpk_worker_order order);
/*   errors  WPK_ENOENT no such order */
WPK_MUST_CHECK wpk_err wpk_worker_order_parse(const char *text, enum wpk_worker_order *out);
/* By the worker's own name or by its device's instance. */
bool wpk_worker_order_is_for(const struct wpk_worker *worker, const char *name);
/* What is ordered of the worker, of those orders that are kept. */
void wpk_worker_order_find(const struct wpk_coordinator *c, struct wpk_worker *worker);
/* Would WPK_EVENT_WORKER_SET be carried out? `name`: a worker's, or its device's instance.
 *   errors  WPK_ENOENT no such worker; WPK_ENOSPC orders for too many are kept */
WPK_MUST_CHECK wpk_err wpk_worker_order_check(const struct wpk_coordinator *coordinator,
                                              const char *name, enum wpk_worker_order order);

#endif
