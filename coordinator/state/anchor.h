/* SPDX-License-Identifier: Apache-2.0 */
/* The anchor of a search: its candidates are timed in turns with it (anchor.c). */
#ifndef WPK_COORDINATOR_STATE_ANCHOR_H
#define WPK_COORDINATOR_STATE_ANCHOR_H

#include "coordinator/state/asks.h"

#define WPK_ANCHORLESS_MAX 2 /* candidates leased at a time while there is no anchor */

/* A search's anchor, and the stand-in that takes its place when it is lost or fails. */
struct wpk_anchor {
    char sha256[WPK_ID_MAX]; /* the anchor: all ratios are to its time; "": none yet; never
                              * changes once it is set */
    char now[WPK_ID_MAX];    /* artifact that is timed: the anchor or its stand-in; "": none */
    double ratio;            /* time of `now` over the anchor's */
    double last_ns;          /* the anchor's time in the last trial with `now`; 0: unknown */
    uint64_t failed[WPK_BEST_MAX]; /* hashes of artifacts that failed as `now`: a ring */
    uint32_t failed_count;         /* failures so far */
};

/* True if the strategy may be told this candidate's time: it was timed in turns with `now`, or
 * there is no `now` and the candidate can be that itself. */
bool wpk_anchor_fits(const struct wpk_search *search, const struct wpk_record *record);
/* The record with its ratio to the search's anchor. Where `now` is "", the record's artifact
 * becomes `now`, and the anchor if there is none. */
const struct wpk_record *wpk_anchor_apply(struct wpk_coordinator *c, struct wpk_search *search,
                                          const struct wpk_record *record);
/* Choose a stand-in among the search's best; `now` is "" if there is none. */
void wpk_anchor_replace(struct wpk_coordinator *c, struct wpk_search *search);
/* This artifact is lost or revoked: choose a stand-in if it is `now`. */
void wpk_anchor_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact);
/* True if `now` failed beside the candidate of this record; a stand-in takes its place. */
bool wpk_anchor_failed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_record *record);
/* True if there is no anchor to time with, and WPK_ANCHORLESS_MAX candidates are leased. */
bool wpk_anchor_waits(const struct wpk_search *search);

#endif
