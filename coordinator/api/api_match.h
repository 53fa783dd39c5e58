/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a lookup's match as a Match of schema/openapi.yaml. For the files api_*.c only. */
#ifndef WPK_COORDINATOR_API_API_MATCH_H
#define WPK_COORDINATOR_API_API_MATCH_H

#include "coordinator/index/lookup.h"

/* True if the match was measured for this problem. */
bool wpk_match_is_hit(const struct wpk_match *match);
/* Append the match; with its kernel if `whole`. */
void wpk_match_append(const struct wpk_match *match, bool whole, struct wpk_buf *out);

#endif
