/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a final: which of its contenders wins (verdict.c). */
#ifndef WPK_COORDINATOR_STATE_VERDICT_H
#define WPK_COORDINATOR_STATE_VERDICT_H

#include "coordinator/state/final.h"
#include "coordinator/state/phase.h"

#define WPK_NOT_STORED UINT64_MAX /* id of a kernel that its KERNEL_PUT will name */

/* The fastest contender of those that count and were not rejected; NULL: there is none. */
struct wpk_final_entry *wpk_verdict_fastest(struct wpk_search *search,
                                            bool (*counts)(const struct wpk_final_entry *));
enum wpk_verdict {
    WPK_VERDICT_KERNEL,  /* the winner was handed to the store */
    WPK_VERDICT_NOTHING, /* can be served */
    WPK_VERDICT_PLAIN,   /* nothing but the plain kernel, which is awaited */
    WPK_VERDICT_AGAIN,   /* the final is to be held again */
};

/* Choose the winner. `reason`: why there is nothing. */
enum wpk_verdict wpk_verdict_reach(struct wpk_coordinator *c, struct wpk_search *search,
                                   char reason[WPK_REASON_MAX]);
/* The winner is what the problem serves from now on, as this kernel. */
void wpk_verdict_serve(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id);
/* How an operator ends whose search has a kernel: failed where nothing of our own works, the plain
 * kernel included. `reason`: why the answer is no candidate of the search; "" where it is one. */
enum wpk_phase wpk_verdict_phase(const struct wpk_search *search, char reason[WPK_REASON_MAX]);

#endif
