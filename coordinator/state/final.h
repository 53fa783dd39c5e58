/* SPDX-License-Identifier: Apache-2.0 */
/* Finals and verifications: the end of a search (final.c). A final's entries are its contenders. */
#ifndef WPK_COORDINATOR_STATE_FINAL_H
#define WPK_COORDINATOR_STATE_FINAL_H

#include "coordinator/state/work_item.h"

struct wpk_kernel_event;
struct wpk_search;
struct wpk_worker;

#define WPK_FINAL_OWN_MAX 4      /* candidates in a final: noise may have misordered them */
#define WPK_FINAL_VERIFIED_MAX 2 /* candidates verified: the second replaces a revoked first */
#define WPK_FINAL_ROUNDS_MIN 5   /* odd, so that the median is a sample */
#define WPK_FINAL_ROUNDS 15      /* at most */
#define WPK_SECOND_MS 30000      /* a verification waits so long for another worker */

enum wpk_entry_kind {
    WPK_ENTRY_OWN,    /* one of the search's best candidates */
    WPK_ENTRY_VENDOR, /* one of the search's vendors */
    WPK_ENTRY_SERVED, /* what the problem serves now, of another search */
};

struct wpk_final_entry {
    enum wpk_entry_kind kind;
    uint32_t number; /* OWN: of the ask */
    char *candidate; /* owned by the search; "" unless OWN */
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact_sha256[WPK_ID_MAX];
    /* The trial in the search; none for SERVED. A verified entry has its largest errors. */
    struct wpk_trial_summary trial;
    struct wpk_timing timing; /* in the final if `timed`, else in its trial */
    uint64_t worker;          /* name hash of the worker that timed it; 0: unknown */
    bool timed;               /* in the final: its time compares with the others' */
    bool rejected;            /* it did not verify, or was revoked */
    bool lost;                /* its artifact is: the next final is held without it */
    bool verified;            /* on fresh inputs */
    char verified_by[WPK_WORKER_NAME_MAX];
    char *schedule; /* that was verified; owned by the search; NULL: none was sent */
};

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

#endif
