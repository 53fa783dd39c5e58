/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator changes of a problem's kernels, told to the searches that go on.
 *
 * The store refuses to serve what was revoked, and that is what counts. But a search that did not
 * know would time its candidates against it, let it win, and end with a kernel that nobody gets,
 * although it has others. */
#include "coordinator/state/revoked.h"

#include "coordinator/state/anchor.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/course.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/piece.h"
#include "coordinator/state/plain.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/table.h"

#include <stdio.h>
#include <string.h>

/* A shared object by its hash, a vendor's kernel by its provider: neither can be the other. */
static uint64_t key_of(const char *provider, const char *artifact)
{
    return wpk_table_hash(artifact[0] != '\0' ? artifact : provider);
}

bool wpk_revoked_has(const struct wpk_revoked *revoked, const char *provider, const char *artifact)
{
    uint64_t key = key_of(provider, artifact);
    for (uint32_t i = 0; i < revoked->count; i++) {
        if (revoked->keys[i] == key) {
            return true;
        }
    }
    return false;
}

void wpk_revoked_put(struct wpk_revoked *revoked, const char *provider, const char *artifact)
{
    if (!wpk_revoked_has(revoked, provider, artifact) && revoked->count < WPK_REVOKED_MAX) {
        revoked->keys[revoked->count++] = key_of(provider, artifact);
    }
}

const struct wpk_record *wpk_revoked_refuse(struct wpk_coordinator *c,
                                            const struct wpk_search *search, const char *provider,
                                            const struct wpk_record *record)
{
    bool nameless = provider[0] == '\0' && record->artifact_sha256[0] == '\0';
    if (record->outcome != WPK_OUTCOME_OK || nameless ||
        !wpk_revoked_has(&search->revoked, provider,
                         provider[0] != '\0' ? "" : record->artifact_sha256)) {
        return record;
    }
    struct wpk_record *refused = wpk_effect_memory(c, 1, sizeof *refused);
    refused->outcome = WPK_OUTCOME_WRONG_RESULT;
    snprintf(refused->log, sizeof refused->log, "revoked before");
    return refused;
}

/* Nothing that it has measured of this counts any more. */
static void forget(struct wpk_coordinator *c, struct wpk_search *search, const char *provider,
                   const char *artifact)
{
    wpk_revoked_put(&search->revoked, provider, artifact);
    for (uint32_t i = 0; i < search->vendor_count && artifact[0] == '\0'; i++) {
        struct wpk_piece *vendor = &search->vendors[i];
        if (vendor->standing == WPK_STANDING_ENDED && strcmp(vendor->text, provider) == 0) {
            vendor->trial = (struct wpk_trial_summary){.outcome = WPK_OUTCOME_WRONG_RESULT};
        }
    }
    if (artifact[0] != '\0') {
        wpk_search_reject(search, artifact, WPK_OUTCOME_WRONG_RESULT);
        wpk_plain_revoked(search, artifact);
        wpk_anchor_lost(c, search, artifact);
    }
}

void wpk_revoked_change(struct wpk_coordinator *c)
{
    const struct wpk_kernel_event *event = c->event->kernel;
    struct wpk_search *search = wpk_table_get(&c->searches_by_problem, event->problem_id);
    bool revokes = event->revoked_provider[0] != '\0';
    for (; search != NULL; search = search->problem_next) {
        if (revokes) {
            forget(c, search, event->revoked_provider, event->revoked_artifact);
        }
        wpk_final_changed(c, search, event);
        wpk_search_advance(c, search);
    }
}
