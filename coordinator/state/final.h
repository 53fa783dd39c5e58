/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a search: the contenders that are timed side by side, and what becomes of each
 * (final.c). */
#ifndef WPK_COORDINATOR_STATE_FINAL_H
#define WPK_COORDINATOR_STATE_FINAL_H

#include "coordinator/state/work_item.h"

struct wpk_kernel_event;
struct wpk_search;
struct wpk_worker;

#define WPK_FINAL_OWN_MAX 4      /* of our own in a final: noise may have misordered them */
#define WPK_FINAL_VERIFIED_MAX 2 /* of these are verified: the second follows if one is revoked */
#define WPK_FINAL_ROUNDS 15   /* odd, so that the median is a sample */
#define WPK_SECOND_MS 30000   /* a winner waits for a worker other than the one that timed it */

enum wpk_entry_kind {
    WPK_ENTRY_OWN,    /* one of the search's best */
    WPK_ENTRY_VENDOR, /* of the search */
    WPK_ENTRY_SERVED, /* the problem's kernel so far, of another search */
};

struct wpk_final_entry {
    enum wpk_entry_kind kind;
    uint32_t number; /* OWN: of the ask */
    char *candidate; /* owned by the search; "" but for OWN */
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact_sha256[WPK_ID_MAX];
    /* What was known before, none of SERVED; of a verified one with its largest errors. */
    struct wpk_trial_summary trial;
    struct wpk_timing timing; /* after the final */
    uint64_t worker;          /* hash of the name of who took that time; 0: not known */
    bool timed;               /* in the final: its time compares with the others' */
    bool rejected;            /* did not verify */
    bool verified;            /* on fresh inputs: */
    char verified_by[WPK_WORKER_NAME_MAX];
    char *schedule; /* as it was verified; owned by the search; NULL: none was sent */
};

void wpk_final_fini(struct wpk_search *search);
/* Choose who takes part in the next final: of fewer than two none is to be held. */
void wpk_final_collect(struct wpk_coordinator *c, struct wpk_search *search);
/* Did a rejection let a candidate in that the last final was without? */
bool wpk_final_has_successor(const struct wpk_search *search);
bool wpk_final_is_unverified(const struct wpk_final_entry *entry);
uint32_t wpk_final_count_verified(const struct wpk_search *search);
/* Open the verification of this entry. */
void wpk_final_try(struct wpk_coordinator *c, struct wpk_search *search,
                   struct wpk_final_entry *own);
/* times [entry_count], or NULL when it did not take place */
void wpk_final_timed(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_timing *times, const struct wpk_worker *worker);
void wpk_final_verified(struct wpk_coordinator *c, struct wpk_search *search,
                        const struct wpk_record *record, const struct wpk_worker *worker);
void wpk_final_kernel_put(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id);
/* Is the worker one that must not verify what waits for that, or what another verifies? */
bool wpk_final_excludes(const struct wpk_search *search, const struct wpk_worker *worker);
/* Go on without this shared object, which nobody can have any more: it is measured again when it is
 * asked again. */
void wpk_final_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact);
/* Go on with what the problem serves now, and without what was revoked. */
void wpk_final_changed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_kernel_event *event);

#endif
