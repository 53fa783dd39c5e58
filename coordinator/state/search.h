/* SPDX-License-Identifier: Apache-2.0 */
/* Searches. A search has its asks, its results and a phase. Operators that ask the same share one.
 *
 * Only the window of a search's asks is in memory: from the first one that was not told to the
 * strategy to the last one. Of the asks before it, their counts and the best ones are kept. */
#ifndef WPK_COORDINATOR_STATE_SEARCH_H
#define WPK_COORDINATOR_STATE_SEARCH_H

#include "coordinator/state/model.h"

/* Set the least time of a measurement in new searches: 2 to 1000; NULL: 20. False: it is none. */
WPK_MUST_CHECK bool wpk_search_set_time(const char *ms);
struct wpk_search *wpk_search_new(struct wpk_coordinator *c, const struct wpk_search_key *key,
                                  const char *key_hash);
void wpk_search_free(struct wpk_coordinator *c, struct wpk_search *search);
/* Handlers of events: the answer to an OPEN_SEARCH; to an ASK. */
void wpk_search_opened(struct wpk_coordinator *c);
void wpk_search_asked(struct wpk_coordinator *c);
/* The search with this id; with this handle. NULL: there is none. */
struct wpk_search *wpk_search_find(const struct wpk_coordinator *c, uint64_t id);
struct wpk_search *wpk_search_find_handle(const struct wpk_coordinator *c, uint64_t handle);
/* True if `device` is set. */
bool wpk_search_has_device(const struct wpk_search *search);
/* True if the store refused the search: it FAILED, and is never opened. */
bool wpk_search_is_broken(const struct wpk_search *search);
/* True if the worker may do this stage of the search's work, and its results count. */
bool wpk_search_trusts(const struct wpk_search *search, const struct wpk_worker *worker,
                       enum wpk_work_stage stage);
/* The search's work item with this id; NULL: it has none. */
struct wpk_work_item *wpk_search_work_item(struct wpk_search *search, wpk_work_id work);
/* Ask the strategy for up to `count` candidates, if it can be. True if an ASK is under way. */
bool wpk_search_want(struct wpk_coordinator *c, struct wpk_search *search, uint32_t count);
/* True if the phase, the budget, the window and the strategy allow an ASK. */
bool wpk_search_can_ask(const struct wpk_search *search, uint64_t now_ns);
bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns);
/* Time during which the search had leases, until `now_ns`. */
uint64_t wpk_search_elapsed_ns(const struct wpk_search *search, uint64_t now_ns);
/* Store the counters of searches that are marked for it. */
void wpk_search_store(struct wpk_coordinator *c);
/* Take a search that is not needed out of the state, and keep its memory until the next call of
 * wpk_search_free_released(). */
void wpk_search_release(struct wpk_coordinator *c, struct wpk_search *search);
void wpk_search_free_released(struct wpk_coordinator *c);

/* Handlers of events about kernels: one was stored; an administrator changed what a
 * problem serves; a shared object is lost. */

void wpk_kernel_put(struct wpk_coordinator *c);
void wpk_kernel_changed(struct wpk_coordinator *c);
void wpk_kernel_artifact_lost(struct wpk_coordinator *c);

/* The course of a search: how long it goes on, and what phase it is in. */

/* Let the operators that were bound to the search join it, and go on to its next phase if this one
 * is over. */
void wpk_course_advance(struct wpk_coordinator *c, struct wpk_search *search);

/* The key of a search: operators with equal keys share a search. */

/* The key of the operator's search in the timing class with this text, to which the back ends that
 * the search uses were added. */
void wpk_search_key_make(const struct wpk_job_op_state *op, const char *class_text,
                         struct wpk_search_key *key);
void wpk_search_key_hash(const struct wpk_search_key *key, char out[WPK_ID_MAX]);
/* The text of the key's timing class, as wpk_timing_class_text() prints it, without back ends. */
void wpk_search_key_class(const struct wpk_search_key *key, char out[WPK_TIMING_CLASS_TEXT_MAX]);
/* The provider of a candidate's trial (search/back_end.h), in the effects' arena. */
const char *wpk_search_key_provider(struct wpk_coordinator *c, const struct wpk_search *search,
                                    const char *candidate);

#endif
