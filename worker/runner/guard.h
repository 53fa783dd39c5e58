/* SPDX-License-Identifier: Apache-2.0 */
/* Memory between guard pages: a kernel that leaves its buffer crashes instead of corrupting.
 *
 *     END      | guard | slack … buffer | guard |   the byte after the last one is the guard's
 *     START    | guard | buffer … slack | guard |   the byte before the first one is the guard's
 *     SHIFTED  | guard | element, buffer … slack | guard |   one element past a multiple of 64
 *     ALIGNED  | guard | slack … buffer, slack | guard |   at a multiple of 64, the last there is
 *
 * END and SHIFTED are aligned to the elements only, as the kernels' ABI allows; timing uses
 * ALIGNED. The slack holds a pattern, which wpk_guard_check compares. */
#ifndef WPK_WORKER_RUNNER_GUARD_H
#define WPK_WORKER_RUNNER_GUARD_H

#include "common/err.h"
#include "worker/provider/provider.h"

#define WPK_GUARD_BLOCKS_MAX 64

enum wpk_guard_placement {
    WPK_GUARD_ALIGNED,
    WPK_GUARD_END,
    WPK_GUARD_START,
    WPK_GUARD_SHIFTED,
};

struct wpk_guard_block {
    unsigned char *map; /* NULL: this block is free */
    size_t map_size;
    unsigned char *data;
    size_t size;
};

/* = {0} has no memory. `placement` may change: it is that of memory taken afterwards. */
struct wpk_guard {
    enum wpk_guard_placement placement;
    struct wpk_guard_block blocks[WPK_GUARD_BLOCKS_MAX];
    struct wpk_provider_memory memory; /* takes from this guard; set by init */
};

void wpk_guard_init(struct wpk_guard *guard, enum wpk_guard_placement placement);
void wpk_guard_fini(struct wpk_guard *guard);

/* Where a faulting address lies: "just past a buffer", "just before a buffer", or "nowhere near a
 * buffer". Static; safe in a signal handler. */
const char *wpk_guard_explain(const struct wpk_guard *guard, const void *address);

/* Check that every slack still has its pattern.   errors  WPK_ECORRUPT */
wpk_err wpk_guard_check(const struct wpk_guard *guard, struct wpk_diag *diag);

#endif
