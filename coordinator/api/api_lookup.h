/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup's match as an answer. For the files api_*.c only. */
#ifndef WPK_COORDINATOR_API_API_LOOKUP_H
#define WPK_COORDINATOR_API_API_LOOKUP_H

#include "coordinator/api/api_call.h"
#include "coordinator/index/lookup.h"

/* Find and append a Match of schema/openapi.yaml, with its kernel if `whole`. A device of ""
 * becomes the only known one; false after answering that several are known. */
WPK_MUST_CHECK bool wpk_lookup_answer(struct wpk_call *call,
                                      const struct wpk_index_version *version,
                                      struct wpk_lookup *lookup, bool whole, struct wpk_buf *out);

#endif
