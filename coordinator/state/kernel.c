/* SPDX-License-Identifier: Apache-2.0 */
/* Events about kernels, passed on to the searches that go on: a kernel was stored, changed by an
 * operator, or lost.
 *
 * The store refuses to serve a revoked kernel in any case. But a search that did not know of the
 * revocation would time its candidates against the revoked kernel, might let it win, and would end
 * with a kernel that is not served, although it has others. */
#include "coordinator/state/kernel.h"

#include "coordinator/state/anchor.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/plain.h"
#include "coordinator/state/revoked.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/table.h"
#include "coordinator/state/work_item.h"

#include <string.h>

/* Discard all measurements that the search has of a revoked implementation. */
static void forget(struct wpk_coordinator *c, struct wpk_search *search, const char *provider,
                   const char *artifact)
{
    wpk_revoked_put(&search->revoked, provider, artifact);
    for (uint32_t i = 0; i < search->vendor_count && artifact[0] == '\0'; i++) {
        struct wpk_work_item *vendor = &search->vendors[i];
        if (vendor->standing == WPK_STANDING_ENDED && strcmp(vendor->text, provider) == 0) {
            vendor->trial = (struct wpk_trial_summary){.outcome = WPK_OUTCOME_WRONG_RESULT};
        }
    }
    if (artifact[0] != '\0') {
        wpk_asks_reject(search, artifact, WPK_OUTCOME_WRONG_RESULT);
        wpk_plain_revoked(search, artifact);
        wpk_anchor_lost(c, search, artifact);
    }
}

void wpk_kernel_changed(struct wpk_coordinator *c)
{
    const struct wpk_kernel_event *event = c->event->kernel;
    struct wpk_search *search = wpk_table_get(&c->searches_by_problem, event->problem_id);
    bool revokes = event->revoked_provider[0] != '\0';
    for (; search != NULL; search = search->problem_next) {
        if (revokes) {
            forget(c, search, event->revoked_provider, event->revoked_artifact);
        }
        wpk_final_changed(c, search, event);
    }
}

void wpk_kernel_put(struct wpk_coordinator *c)
{
    struct wpk_search *search = wpk_search_find_handle(c, c->event->handle);
    if (search != NULL) {
        wpk_final_kernel_put(c, search, c->event->kernel_id);
    }
}

void wpk_kernel_artifact_lost(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->search_count; i++) {
        wpk_final_lost(c, c->searches[i], c->event->sha256);
    }
}
