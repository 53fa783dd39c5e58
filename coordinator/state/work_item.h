/* SPDX-License-Identifier: Apache-2.0 */
/* Work items: an ask of a search, a vendor's baseline, a final, a verification, the plain kernel;
 * and what a recorded trial of one comes to. */
#ifndef WPK_COORDINATOR_STATE_WORK_ITEM_H
#define WPK_COORDINATOR_STATE_WORK_ITEM_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_lease;

#define WPK_ATTEMPTS_MAX 3 /* leases of one work item before it is abandoned */

/* What a recorded trial comes to; all that is kept of it in memory. */
struct wpk_trial_summary {
    enum wpk_outcome outcome;
    uint64_t median_ns; /* 0 unless ok */
    uint64_t min_ns;
    uint64_t mad_ns;
    uint64_t anchor_ns;
    double anchor_ratio; /* to its search's anchor; 0: it was not timed in turns with that */
    bool censored;
    double error_max;
    double error_tolerance;
    double of_rms;
    double times_direct; /* -1: not measured */
    uint64_t constants_bytes;
    char artifact_sha256[WPK_ID_MAX]; /* "" when none was kept */
};

/* Which of two candidates of a search is faster: times of different moments do not compare, ratios
 * to the anchor do. */
bool wpk_trial_is_faster(const struct wpk_trial_summary *a, const struct wpk_trial_summary *b);
/* Was it stopped early, or is it outside the class? Its time says little either way. */
bool wpk_trial_raced_out(struct wpk_accuracy accuracy, const struct wpk_trial_summary *trial);

/* Where a work item stands. */
enum wpk_standing {
    WPK_STANDING_OPEN, /* wants a worker */
    WPK_STANDING_LEASED,
    WPK_STANDING_ENDED,
};

/* What a worker that only builds has made of a candidate, for one that runs it. */
struct wpk_built {
    char artifact_sha256[WPK_ID_MAX];
    char schedule_sha256[WPK_ID_MAX];
    char *schedule; /* owned; NULL: none was sent */
    uint64_t build_ns;
    uint32_t attempts; /* that building it took */
};

#define WPK_OPEN_END UINT32_MAX /* no ask */

/* A work item: an ask of the search, a vendor's baseline, a final or a verification. */
struct wpk_work_item {
    enum wpk_standing standing;
    uint32_t attempts;       /* leases given out so far, but for those given back */
    uint64_t lost_on;        /* device_hash of whose attempt came to nothing last; 0: none */
    struct wpk_lease *lease; /* LEASED */
    struct wpk_built *built; /* owned; NULL: it was not built apart from its run */
    uint32_t open_prev;      /* OPEN, of an ask: its neighbours in the list; WPK_OPEN_END */
    uint32_t open_next;
    bool known;                     /* history had the result */
    char *text;                     /* candidate; for a vendor its provider; owned */
    struct wpk_trial_summary trial; /* ENDED */
};

struct wpk_trial_summary wpk_trial_summarize(const struct wpk_record *record);
/* For an effect: in its arena. */
const struct wpk_work_item *wpk_work_item_copy(struct wpk_coordinator *c,
                                               const struct wpk_work_item *item, const char *text);
void wpk_built_free(struct wpk_built *built);
/* Free the texts of `count` work items, and the array. */
void wpk_work_items_free(struct wpk_work_item *items, uint32_t count);

#endif
