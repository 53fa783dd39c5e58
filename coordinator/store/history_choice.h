/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a kernel that a choice (schema/choice.h) needs beyond the kernel's row. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_CHOICE_H
#define WPK_COORDINATOR_STORE_HISTORY_CHOICE_H

#include "coordinator/store/store.h"
#include "schema/accuracy.h"
#include "schema/record.h"

/* The kernel and the vendor whose data are wanted; "" for none. */
struct wpk_history_chain {
    const char *artifact; /* of the best generated kernel, as the next two */
    const char *provider;
    const char *candidate;
    const char *vendor; /* provider that was timed beside it */
};

struct wpk_history_choice {
    struct wpk_accuracy accuracy; /* class of the kernel's search, which all contenders are in */
    double own_times_direct; /* as in schema/record.h, the largest of its trial and of all finals
                                that served or kept it; -1: not measured */
    double vendor_times_direct;
    double plain_times_direct;
    enum wpk_conditions conditions;
    struct wpk_buf recipe;         /* owned; the vendor's entry, as JSON; empty: none recorded */
    char plain_sha256[WPK_ID_MAX]; /* of the plain kernel; "": none, or it was revoked */
};

/* False when there is no such kernel.
 *   owns    caller calls wpk_buf_fini on out->recipe */
bool wpk_history_read_choice(struct wpk_store *store, uint64_t kernel_id,
                             const struct wpk_history_chain *chain, struct wpk_history_choice *out);

#endif
