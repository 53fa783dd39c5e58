/* SPDX-License-Identifier: Apache-2.0 */
/* Revoked implementations of a problem, as its searches know them (revoked.c). */
#ifndef WPK_COORDINATOR_STATE_REVOKED_H
#define WPK_COORDINATOR_STATE_REVOKED_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_search;

#define WPK_REVOKED_MAX 64 /* that a search knows of its problem; the store knows all */

/* A problem's revoked implementations: hashes of shared objects' names, and of vendors'
 * providers. */
struct wpk_revoked {
    uint64_t keys[WPK_REVOKED_MAX];
    uint32_t count;
};

/* True if this was revoked. `artifact` "": the vendor's own kernel; else `provider` is not used. */
bool wpk_revoked_has(const struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* Add a revoked implementation. It is left out if there is no room. */
void wpk_revoked_put(struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* The record as it is; or, if its implementation was revoked, a failed record in its place.
 * `provider`: a vendor's; "": of a candidate. */
const struct wpk_record *wpk_revoked_refuse(struct wpk_coordinator *c,
                                            const struct wpk_search *search, const char *provider,
                                            const struct wpk_record *record);

#endif
