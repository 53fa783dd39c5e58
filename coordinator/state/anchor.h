/* SPDX-License-Identifier: Apache-2.0 */
/* What a search's candidates are timed in turns with (anchor.c). */
#ifndef WPK_COORDINATOR_STATE_ANCHOR_H
#define WPK_COORDINATOR_STATE_ANCHOR_H

#include "coordinator/state/asks.h"

#define WPK_ANCHORLESS_MAX 2 /* candidates leased at a time while there is nothing to time with */

/* What candidates are timed in turns with: anchor.c. */
struct wpk_anchor {
    char sha256[WPK_ID_MAX]; /* all ratios are to this artifact's time; "": none yet, once set it
                              * stays */
    char now[WPK_ID_MAX];    /* what is timed: itself, or its stand-in; "": none now */
    double ratio;            /* time of `now` over the anchor's */
    double last_ns;          /* the anchor's, by the last that was timed with it; 0: not known */
    uint64_t failed[WPK_BEST_MAX]; /* hashes of what failed beside a candidate: a ring */
    uint32_t failed_count;         /* so far */
};

/* May this candidate's time be told: was it timed in turns with what the search's are, or can it be
 * that? */
bool wpk_anchor_fits(const struct wpk_search *search, const struct wpk_record *record);
/* The record with its ratio to the search's anchor, which it becomes where there is none. */
const struct wpk_record *wpk_anchor_apply(struct wpk_coordinator *c, struct wpk_search *search,
                                          const struct wpk_record *record);
/* Choose a stand-in among the best. */
void wpk_anchor_replace(struct wpk_coordinator *c, struct wpk_search *search);
/* Likewise, if this is what the search's candidates are timed with: nobody can have it any more. */
void wpk_anchor_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact);
/* Did the anchor fail beside the candidate of this record? Then another one takes its place. */
bool wpk_anchor_failed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_record *record);
/* Are as many candidates out as may be while there is no anchor? */
bool wpk_anchor_waits(const struct wpk_search *search);

#endif
