/* SPDX-License-Identifier: Apache-2.0 */
/* Finals and verifications: the end of a search (final.c). A final's entries are its contenders. */
#ifndef WPK_COORDINATOR_STATE_FINAL_H
#define WPK_COORDINATOR_STATE_FINAL_H

#include "coordinator/state/model.h"

struct wpk_kernel_event;
struct wpk_opened;

/* Free the entries and the work items. */
void wpk_final_fini(struct wpk_search *search);
/* Collect the entries of the next final. With fewer than two no final is to be held. */
void wpk_final_collect(struct wpk_coordinator *c, struct wpk_search *search);
/* Add entry number `i` of the best candidates. */
void wpk_final_add_best(struct wpk_coordinator *c, struct wpk_search *search, uint32_t i);
/* Rounds of the final: as many as candidates were tried, within the limits above. Of a model's many
 * short searches the finals would else take longer than all the rest. */
uint32_t wpk_final_rounds(const struct wpk_search *search);
/* Set the number of the final from its entries. */
void wpk_final_number(struct wpk_search *search);
/* True if one of the best candidates was not in the last final, because of rejections since. */
bool wpk_final_has_successor(const struct wpk_search *search);
/* True if the entry is a candidate that is not verified. */
bool wpk_final_is_unverified(const struct wpk_final_entry *entry);
uint32_t wpk_final_count_verified(const struct wpk_search *search);
/* True if an entry is lost. */
bool wpk_final_is_outdated(const struct wpk_search *search);
/* Open the verification of this entry. The worker that timed it is excluded for WPK_SECOND_MS, if
 * there is another one. */
void wpk_final_try(struct wpk_coordinator *c, struct wpk_search *search,
                   struct wpk_final_entry *own);
/* End the final, or the heat, with times [entry_count]; NULL: it did not take place. */
void wpk_final_timed(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_timing *times, const struct wpk_worker *worker);
/* End the verification with this record. `worker`: NULL if it was abandoned. */
void wpk_final_verified(struct wpk_coordinator *c, struct wpk_search *search,
                        const struct wpk_record *record, const struct wpk_worker *worker);
/* The winner is stored as this kernel. */
void wpk_final_kernel_put(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id);
/* True if the worker must not verify: it timed the entry, and another worker has the verification
 * or is still waited for. */
bool wpk_final_excludes(const struct wpk_search *search, const struct wpk_worker *worker);
/* Go on without this shared object, which is lost. The candidate is measured again when it is asked
 * again. */
void wpk_final_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact);
/* Go on with what the problem serves now, and without what was revoked. */
void wpk_final_changed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_kernel_event *event);

/* The verdict on a final: which of its contenders wins (verdict.c). */

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

/* The plain kernel of a search's operator (plain.c). */

/* Take what the store had of the plain kernel out of `opened`. */
void wpk_plain_open(struct wpk_search *search, struct wpk_opened *opened);
void wpk_plain_fini(struct wpk_search *search);
/* Stages of the plain kernel that a worker can be given, as bits 1 << enum wpk_queue_stage. */
unsigned wpk_plain_ready(const struct wpk_search *search);
/* True if the search must not end before its plain kernel: it is leased, or a worker can do it. */
bool wpk_plain_awaited(const struct wpk_search *search);
/* The candidate has ended with this record: it is the plain kernel, or the next one is tried. */
void wpk_plain_ended(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_record *record, const struct wpk_worker *worker);
/* True if there is a plain kernel, verified and timed. */
bool wpk_plain_works(const struct wpk_search *search);
/* The plain kernel as an entry, to be recorded as a winner or beside one; NULL: there is none. */
const struct wpk_final_entry *wpk_plain_entry(struct wpk_search *search);
/* This shared object was revoked. If it is the plain kernel, the next candidate is tried. */
void wpk_plain_revoked(struct wpk_search *search, const char *artifact);

#endif
