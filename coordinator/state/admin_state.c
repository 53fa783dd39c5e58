/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/admin_state.h"

#include "coordinator/state/state.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker.h"

#include <string.h>

static const char *const state_names[] = {WPK_ADMIN_STATE_LIST(WPK_LIST_TEXT)};

const char *wpk_admin_state_name(enum wpk_admin_state state)
{
    WPK_ASSERT(state < WPK_ADMIN_STATE_COUNT);
    return state_names[state];
}

wpk_err wpk_admin_state_parse(const char *text, enum wpk_admin_state *out)
{
    for (int i = 0; i < WPK_ADMIN_STATE_COUNT; i++) {
        if (strcmp(state_names[i], text) == 0) {
            *out = (enum wpk_admin_state)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

bool wpk_admin_state_is_for(const struct wpk_worker *worker, const char *name)
{
    return strcmp(worker->hello.name, name) == 0 ||
           strcmp(worker->hello.device.instance, name) == 0;
}

wpk_err wpk_admin_state_check(const struct wpk_coordinator *c, const char *name,
                              enum wpk_admin_state state)
{
    bool kept = wpk_table_get_text(&c->admin_states, name) != NULL;
    bool known = kept;
    for (uint32_t i = 0; i < c->worker_count && !known; i++) {
        known = wpk_admin_state_is_for(c->workers[i], name);
    }
    if (!known) {
        return WPK_ENOENT;
    }
    bool full = !kept && c->admin_states.count == WPK_ADMIN_STATES_MAX;
    return full && state != WPK_ADMIN_STATE_NONE ? WPK_ENOSPC : WPK_OK;
}

/* By its name, or by its device, which stays the same whatever name the worker has next. */
void wpk_admin_state_find(const struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_admin_entry *entry = wpk_table_get_text(&c->admin_states, worker->hello.name);
    const struct wpk_admin_entry *of_device =
        wpk_table_get_text(&c->admin_states, worker->hello.device.instance);
    if (entry == NULL || (of_device != NULL && of_device->state > entry->state)) {
        entry = of_device;
    }
    worker->admin_state = entry != NULL ? entry->state : WPK_ADMIN_STATE_NONE;
    worker->admin_reason = entry != NULL ? entry->reason : "";
}
