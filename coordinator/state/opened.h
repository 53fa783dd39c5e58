/* SPDX-License-Identifier: Apache-2.0 */
/* What the store and the strategy answer: a search that was opened, and candidates. */
#ifndef WPK_COORDINATOR_STATE_OPENED_H
#define WPK_COORDINATOR_STATE_OPENED_H

#include "coordinator/state/anchor.h"
#include "coordinator/state/revoked.h"

#define WPK_ASKED_MAX WPK_WORK_MAX

/* What the store knew of a search. Counts and `best` are of the asks before the window. */
struct wpk_opened {
    wpk_err err; /* the store refused something of it: not opened, its operators fail */
    char reason[WPK_REASON_MAX];
    uint64_t search_id;
    uint64_t problem_id;
    uint64_t elapsed_ns;
    uint32_t ended_asks;
    bool exhausted;
    uint64_t kernel_id;            /* of this search's last result; 0: none */
    char own_artifact[WPK_ID_MAX]; /* of the best of our own in that result; "": none */
    uint64_t served_kernel_id;     /* of the problem; 0: none, or its file is lost */
    char served_provider[WPK_PROVIDER_NAME_MAX];
    char served_artifact[WPK_ID_MAX];
    struct wpk_revoked revoked; /* of the problem: the latest */
    struct wpk_anchor anchor;   /* `now` is "" where it is not there any more */
    uint32_t ask_count;
    uint32_t told_count; /* the first ask without a result */
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of the failed ones; filled in where none was ok */
    struct wpk_best best[WPK_BEST_MAX];   /* best first; texts taken */
    uint32_t best_count;
    struct wpk_work_item *window; /* [ask_count - told_count]; taken, with its texts */
    /* Known ones ENDED; in the key's order; texts taken. */
    struct wpk_work_item vendors[WPK_PROVIDERS_MAX];
    uint32_t vendor_count;
    /* The plain kernel: ENDED if it is known, or if all its candidates failed; with `built`, if
     * another problem has it. */
    struct wpk_work_item plain;
    uint32_t plain_number; /* of the candidate, from 1 */
    char plain_verified_by[WPK_WORKER_NAME_MAX];
};

struct wpk_asked {
    wpk_err err; /* no space, no such strategy or gene: the operator fails */
    char reason[WPK_REASON_MAX];
    bool refused; /* nothing until more is told */
    bool exhausted;
    double size_log2;
    struct wpk_work_item *items; /* [count]; known ones ENDED, the others OPEN; texts taken */
    uint32_t count;
};

/* Free an answer that was stepped, or never will be, with what is left of it. */
void wpk_opened_free(struct wpk_opened *opened);
void wpk_asked_free(struct wpk_asked *asked);

#endif
