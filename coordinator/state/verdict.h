/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a final: which of its contenders wins (verdict.c). */
#ifndef WPK_COORDINATOR_STATE_VERDICT_H
#define WPK_COORDINATOR_STATE_VERDICT_H

#include "coordinator/state/final.h"
#include "coordinator/state/phase.h"

#define WPK_NOT_STORED UINT64_MAX /* id of a kernel until its KERNEL_PUT names it */

/* The fastest entry that has a time, is not rejected, and counts; NULL: there is none. */
struct wpk_final_entry *wpk_verdict_fastest(struct wpk_search *search,
                                            bool (*counts)(const struct wpk_final_entry *));
enum wpk_verdict {
    WPK_VERDICT_KERNEL,  /* the winner was handed to the store */
    WPK_VERDICT_NOTHING, /* nothing can be served */
    WPK_VERDICT_PLAIN,   /* nothing but the plain kernel, which is not there yet */
    WPK_VERDICT_AGAIN,   /* the final is to be held again */
};

/* Choose the winner. `reason` is set with WPK_VERDICT_NOTHING. */
enum wpk_verdict wpk_verdict_reach(struct wpk_coordinator *c, struct wpk_search *search,
                                   char reason[WPK_REASON_MAX]);
/* Note in all searches of the problem and accuracy class that it serves the winner, this kernel. */
void wpk_verdict_serve(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id);
/* The phase in which operators of a search with a result end: FAILED if neither a candidate nor the
 * plain kernel works, else DONE. `reason`: why the answer is not a candidate; "" if it is one. */
enum wpk_search_phase wpk_verdict_phase(const struct wpk_search *search,
                                        char reason[WPK_REASON_MAX]);

#endif
