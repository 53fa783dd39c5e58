/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a lookup's match as a Match of schema/openapi.yaml. For the files api_*.c only. */
#ifndef WPK_COORDINATOR_API_API_MATCH_H
#define WPK_COORDINATOR_API_API_MATCH_H

#include "coordinator/index/estimate.h"

/* True if the match was measured for this problem. */
bool wpk_match_is_hit(const struct wpk_match *match);
/* Append the match; with its kernel if `whole`. A hit has its own expectation: `expected` is not
 * read. */
void wpk_match_append(const struct wpk_match *match, const struct wpk_estimate *expected,
                      bool whole, struct wpk_buf *out);

#endif
