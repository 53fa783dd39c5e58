/* SPDX-License-Identifier: Apache-2.0 */
/* The admin state of a worker: what an operator has set, by the worker's name or by its device's
 * instance. */
#ifndef WPK_COORDINATOR_STATE_ADMIN_STATE_H
#define WPK_COORDINATOR_STATE_ADMIN_STATE_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_worker;

#define WPK_ADMIN_STATES_MAX 4096 /* workers for which an operator has set one */

/* suffix, text */
#define WPK_ADMIN_STATE_LIST(X)                                                                    \
    X(NONE, "none")                                                                                \
    X(DRAIN, "drain")           /* finishes what it has, and gets nothing */                       \
    X(QUARANTINE, "quarantine") /* not believed any more: its results are refused */

enum wpk_admin_state {
#define WPK_ADMIN_STATE_ENUM(name, text) WPK_ADMIN_STATE_##name,
    WPK_ADMIN_STATE_LIST(WPK_ADMIN_STATE_ENUM)
#undef WPK_ADMIN_STATE_ENUM
        WPK_ADMIN_STATE_COUNT
};

/* The admin state of a name, whether such a worker is connected or not. */
struct wpk_admin_entry {
    char name[WPK_WORKER_NAME_MAX];
    enum wpk_admin_state state; /* not NONE */
    char reason[WPK_REASON_MAX];
};

const char *wpk_admin_state_name(enum wpk_admin_state state);
/*   errors  WPK_ENOENT no such admin state */
WPK_MUST_CHECK wpk_err wpk_admin_state_parse(const char *text, enum wpk_admin_state *out);
/* By the worker's own name or by its device's instance. */
bool wpk_admin_state_is_for(const struct wpk_worker *worker, const char *name);
/* Set the worker's admin state from those that are kept. */
void wpk_admin_state_find(const struct wpk_coordinator *c, struct wpk_worker *worker);
/* Would WPK_EVENT_WORKER_SET be carried out? `name`: a worker's, or its device's instance.
 *   errors  WPK_ENOENT no such worker; WPK_ENOSPC admin states of too many names are kept */
WPK_MUST_CHECK wpk_err wpk_admin_state_check(const struct wpk_coordinator *coordinator,
                                             const char *name, enum wpk_admin_state state);

#endif
