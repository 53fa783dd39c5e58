/* SPDX-License-Identifier: Apache-2.0 */
/* Revoked implementations of a problem neither win nor count in its searches. */
#include "coordinator/state/revoked.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/table.h"

#include <stdio.h>

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
