/* SPDX-License-Identifier: Apache-2.0 */
/* Admin states of workers. An administrator sets one for a worker's name, or for its device's
 * instance. */
#ifndef WPK_COORDINATOR_STATE_ADMIN_STATE_H
#define WPK_COORDINATOR_STATE_ADMIN_STATE_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_worker;

#define WPK_ADMIN_STATES_MAX 4096 /* names with an admin state */

/* suffix, text */
#define WPK_ADMIN_STATE_LIST(X)                                                                    \
    X(NONE, "none")                                                                                \
    X(DRAIN, "drain")           /* finishes its leases, and gets no more */                        \
    X(QUARANTINE, "quarantine") /* its results are refused, and it has no leases */

enum wpk_admin_state {
#define WPK_ADMIN_STATE_ENUM(name, text) WPK_ADMIN_STATE_##name,
    WPK_ADMIN_STATE_LIST(WPK_ADMIN_STATE_ENUM)
#undef WPK_ADMIN_STATE_ENUM
        WPK_ADMIN_STATE_COUNT
};

/* The admin state of a name, whether such a worker is connected or not. `name`: a worker's, or its
 * device's instance. */
struct wpk_admin_entry {
    char name[WPK_WORKER_NAME_MAX];
    enum wpk_admin_state state; /* not NONE */
    char reason[WPK_REASON_MAX];
};

const char *wpk_admin_state_name(enum wpk_admin_state state);
/*   errors  WPK_ENOENT no such admin state */
WPK_MUST_CHECK wpk_err wpk_admin_state_parse(const char *text, enum wpk_admin_state *out);
/* True if `name` is the worker's own or its device's instance. */
bool wpk_admin_state_is_for(const struct wpk_worker *worker, const char *name);
/* Set the worker's admin state and reason from those that are kept: of two, the stricter one. */
void wpk_admin_state_find(const struct wpk_coordinator *c, struct wpk_worker *worker);
/* WPK_OK if WPK_EVENT_WORKER_SET can be carried out. `name`: a worker's, or its device's instance.
 *   errors  WPK_ENOENT no such worker; WPK_ENOSPC admin states of too many names are kept */
WPK_MUST_CHECK wpk_err wpk_admin_state_check(const struct wpk_coordinator *coordinator,
                                             const char *name, enum wpk_admin_state state);

#endif
