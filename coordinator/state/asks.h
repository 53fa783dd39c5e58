/* SPDX-License-Identifier: Apache-2.0 */
/* A search's asks: the window of those not told yet, and the best of the others (asks.c). */
#ifndef WPK_COORDINATOR_STATE_ASKS_H
#define WPK_COORDINATOR_STATE_ASKS_H

#include "coordinator/state/model.h"

void wpk_asks_init(struct wpk_search *search);
void wpk_asks_fini(struct wpk_search *search);
/* Add the next ask. `ask` is taken, with its text. */
void wpk_asks_add(struct wpk_search *search, const struct wpk_work_item *ask);
/* Ask `number` of the search; NULL when it is not in its window. */
struct wpk_work_item *wpk_asks_get(const struct wpk_search *search, uint32_t number);
/* Put an ask of the window into its list of open asks, as the first or the last; take it out. */
void wpk_asks_open(struct wpk_search *search, uint32_t number, bool first);
void wpk_asks_unopen(struct wpk_search *search, uint32_t number);
/* The first ask of the list whose last lost attempt was not on the worker's device, among the first
 * few; WPK_OPEN_END: none. */
uint32_t wpk_asks_next(const struct wpk_search *search, const struct wpk_open_list *list,
                       const struct wpk_worker *worker);
/* Count an ask of the window that has ended, and keep it if it is one of the best. `worker`: name
 * hash of the one that measured it; 0: unknown. */
void wpk_asks_count(struct wpk_search *search, uint32_t number, uint64_t worker);
/* Tell the strategy, in their order, the ended asks before the first that has not ended. They leave
 * the window. */
void wpk_asks_tell(struct wpk_coordinator *c, struct wpk_search *search);
/* Drop the best ask with this artifact, and count it as failed with this outcome. */
void wpk_asks_reject(struct wpk_search *search, const char *artifact, enum wpk_outcome outcome);
/* Drop the best ask with this artifact, which is lost. False: none of the best has it. */
bool wpk_asks_lose(struct wpk_search *search, const char *artifact);

/* Revoked implementations of a problem, as its searches know them (asks.c). */

/* True if this was revoked. `artifact` "": the vendor's own kernel; else `provider` is not used. */
bool wpk_revoked_has(const struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* Add a revoked implementation. It is left out if there is no room. */
void wpk_revoked_put(struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* The record as it is; or, if its implementation was revoked, a failed record in its place.
 * `provider`: a vendor's; "": of a candidate. */
const struct wpk_record *wpk_revoked_refuse(struct wpk_coordinator *c,
                                            const struct wpk_search *search, const char *provider,
                                            const struct wpk_record *record);

/* The anchor of a search: its candidates are timed in turns with it (asks.c). */

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
