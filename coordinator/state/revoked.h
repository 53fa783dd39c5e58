/* SPDX-License-Identifier: Apache-2.0 */
/* What was revoked of a problem, as its searches know it (revoked.c). */
#ifndef WPK_COORDINATOR_STATE_REVOKED_H
#define WPK_COORDINATOR_STATE_REVOKED_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_search;

#define WPK_REVOKED_MAX 64    /* of a problem, that its searches know; the store knows all */

/* What was revoked of a problem: shared objects, and vendors' kernels, as hashes of their names. */
struct wpk_revoked {
    uint64_t keys[WPK_REVOKED_MAX];
    uint32_t count;
};

/* `artifact` "": the vendor's own. */
bool wpk_revoked_has(const struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* What there is no room for is left out. */
void wpk_revoked_put(struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* A worker's record of something revoked, as one that failed; of others as it is. `provider` is a
 * vendor's, "" of our own. */
const struct wpk_record *wpk_revoked_refuse(struct wpk_coordinator *c,
                                            const struct wpk_search *search, const char *provider,
                                            const struct wpk_record *record);

#endif
