/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches a list of wpkd with all its pages. */
#ifndef WPK_CLIENT_LIST_H
#define WPK_CLIENT_LIST_H

#include "client/session.h"

/* Append {"<key>": [every item of every page]} to `out`.
 *
 *   query   "" or "name=value", already percent-encoded
 *   max     stop after so many items, at most WPK_API_LIST_MAX
 *   errors  those of wpk_session_ask; WPK_EPARSE not a list
 */
WPK_MUST_CHECK wpk_err wpk_list_fetch(struct wpk_session *session, const char *path,
                                      const char *query, const char *key, int max,
                                      struct wpk_buf *out, struct wpk_diag *diag);

#endif
