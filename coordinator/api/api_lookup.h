/* SPDX-License-Identifier: Apache-2.0 */
/* A match as an answer. For the files api_*.c alone. */
#ifndef WPK_COORDINATOR_API_API_LOOKUP_H
#define WPK_COORDINATOR_API_API_LOOKUP_H

#include "coordinator/api/api_call.h"
#include "coordinator/index/lookup.h"

/* Find and append a Match of schema/openapi.yaml, with its kernel if `whole`. Fills the lookup's
 * device in where it is "" and one alone is known; false after answering that several are. */
WPK_MUST_CHECK bool wpk_lookup_answer(struct wpk_call *call,
                                      const struct wpk_index_version *version,
                                      struct wpk_lookup *lookup, bool whole, struct wpk_buf *out);

#endif
