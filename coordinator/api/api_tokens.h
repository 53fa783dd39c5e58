/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: REST makes, lists and revokes them; auth.h checks them, and gets them from here. */
#ifndef WPK_COORDINATOR_API_API_TOKENS_H
#define WPK_COORDINATOR_API_API_TOKENS_H

#include "coordinator/access/auth.h"
#include "coordinator/store/store.h"

/* Fill `auth` with the tokens of the store, at the start.
 *   errors  WPK_ENOMEM, WPK_ENOSPC; those of the store */
WPK_MUST_CHECK wpk_err wpk_api_tokens_load(struct wpk_store *store, struct wpk_auth *auth,
                                           struct wpk_diag *diag);

#endif
