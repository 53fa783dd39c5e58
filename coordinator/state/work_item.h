/* SPDX-License-Identifier: Apache-2.0 */
/* Work items, each of which is one of: an ask of a search, a vendor's baseline, a final, a
 * verification, a plain kernel's candidate. And the summary of a work item's recorded trial. */
#ifndef WPK_COORDINATOR_STATE_WORK_ITEM_H
#define WPK_COORDINATOR_STATE_WORK_ITEM_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_lease;

#define WPK_ATTEMPTS_MAX 3 /* leases to build it, and as many to run it; then it is abandoned */

/* The summary of a recorded trial: all that is kept of it in memory. */
struct wpk_trial_summary {
    enum wpk_outcome outcome;
    uint64_t median_ns; /* 0 unless ok */
    uint64_t min_ns;
    uint64_t mad_ns;
    uint64_t anchor_ns;
    double anchor_ratio; /* to its search's anchor; 0: not timed in turns with it */
    bool censored;
    double error_max;
    double error_tolerance;
    double of_rms;
    double times_direct; /* -1: not measured */
    uint64_t constants_bytes;
    char artifact_sha256[WPK_ID_MAX]; /* "": no artifact was kept */
};

/* True if candidate `a` of a search is faster than `b`: by their ratios to the anchor, because
 * times of different moments do not compare; by their times if one has no ratio. */
bool wpk_trial_is_faster(const struct wpk_trial_summary *a, const struct wpk_trial_summary *b);
/* True if the trial was stopped early or is outside the accuracy class: its time says little. */
bool wpk_trial_raced_out(struct wpk_accuracy accuracy, const struct wpk_trial_summary *trial);

/* The state of a work item. */
enum wpk_standing {
    WPK_STANDING_OPEN, /* waits for a worker */
    WPK_STANDING_LEASED,
    WPK_STANDING_ENDED,
};

/* The build of a candidate by a build-only worker, for the worker that runs it. */
struct wpk_built {
    char artifact_sha256[WPK_ID_MAX];
    char schedule_sha256[WPK_ID_MAX];
    char *schedule; /* owned; NULL: none was sent */
    uint64_t build_ns;
    uint32_t attempts; /* attempts that the build took */
};

#define WPK_OPEN_END UINT32_MAX /* end of a list of open asks: no ask */

/* A work item. The place in the search says which kind it is of. */
struct wpk_work_item {
    enum wpk_standing standing;
    uint32_t attempts;       /* leases so far, without those that were given back */
    uint64_t lost_on;        /* device_hash of the last attempt without a result; 0: none */
    struct wpk_lease *lease; /* LEASED */
    struct wpk_built *built; /* owned; NULL: not built apart from its run */
    uint32_t open_prev;      /* OPEN ask: its neighbours in the list, or WPK_OPEN_END */
    uint32_t open_next;
    bool known;                     /* the history had its result */
    char *text;                     /* candidate; of a baseline: provider; owned */
    struct wpk_trial_summary trial; /* ENDED */
};

/* The summary of a record; times and artifact only of outcome ok. */
struct wpk_trial_summary wpk_trial_summarize(const struct wpk_record *record);
/* A copy for an effect, with this text, in the effects' arena. */
const struct wpk_work_item *wpk_work_item_copy(struct wpk_coordinator *c,
                                               const struct wpk_work_item *item, const char *text);
void wpk_built_free(struct wpk_built *built);
/* Free the texts of `count` work items, and the array. */
void wpk_work_items_free(struct wpk_work_item *items, uint32_t count);

#endif
