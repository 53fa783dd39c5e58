/* SPDX-License-Identifier: Apache-2.0 */
/* Memory between guard pages: a kernel that leaves its buffer crashes instead of corrupting.
 *
 *     at the end:    | guard | slack … buffer | guard |      catches overruns
 *     at the start:  | guard | buffer … slack | guard |      catches underruns
 *
 * Buffers are aligned to 64 bytes; what is left of the last page is filled with a pattern and
 * looked at afterwards. */
#ifndef WPK_WORKER_GUARD_H
#define WPK_WORKER_GUARD_H

#include "common/err.h"
#include "worker/provider.h"

#define WPK_GUARD_BLOCKS_MAX 64

struct wpk_guard_block {
    unsigned char *map; /* NULL: free place */
    size_t map_size;
    unsigned char *data;
    size_t size;
};

/* = {0} holds nothing. */
struct wpk_guard {
    bool at_start;
    struct wpk_guard_block blocks[WPK_GUARD_BLOCKS_MAX];
    struct wpk_provider_memory memory; /* takes from this guard; set by init */
};

void wpk_guard_init(struct wpk_guard *guard, bool at_start);
void wpk_guard_fini(struct wpk_guard *guard);

/* Where a faulting address lies: "just past a buffer", "just before a buffer", or "nowhere near a
 * buffer". Static; safe in a signal handler. */
const char *wpk_guard_explain(const struct wpk_guard *guard, const void *address);

/* Is every slack as it was?   errors  WPK_ECORRUPT */
wpk_err wpk_guard_check(const struct wpk_guard *guard, struct wpk_diag *diag);

#endif
