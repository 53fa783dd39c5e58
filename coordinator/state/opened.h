/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to effects: the store has opened a search, a strategy was asked for candidates. */
#ifndef WPK_COORDINATOR_STATE_OPENED_H
#define WPK_COORDINATOR_STATE_OPENED_H

#include "coordinator/state/anchor.h"
#include "coordinator/state/revoked.h"

#define WPK_ASKED_MAX WPK_WORK_MAX

/* The state of a search as the store had it. Counts and `best` are of the asks before the
 * window. */
struct wpk_opened {
    wpk_err err; /* the search is not opened: its operators fail */
    char reason[WPK_REASON_MAX];
    uint64_t search_id;
    uint64_t problem_id;
    uint64_t elapsed_ns;
    uint32_t ended_asks;
    bool exhausted;
    uint64_t kernel_id;            /* of this search's last result; 0: none */
    char own_artifact[WPK_ID_MAX]; /* of the best candidate in that result; "": none */
    uint64_t served_kernel_id;     /* of the problem; 0: none, or its file is lost */
    char served_provider[WPK_PROVIDER_NAME_MAX];
    char served_artifact[WPK_ID_MAX];
    struct wpk_revoked revoked; /* the latest of the problem */
    struct wpk_anchor anchor;   /* `now` is "" if its artifact is lost */
    uint32_t ask_count;
    uint32_t told_count; /* number of the first ask without a result */
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of failed asks; filled in where none was ok */
    struct wpk_best best[WPK_BEST_MAX];   /* best first; texts taken */
    uint32_t best_count;
    struct wpk_work_item *window; /* [ask_count - told_count]; taken, with its texts */
    /* In the key's order; ENDED if the history has the result; texts taken. */
    struct wpk_work_item vendors[WPK_PROVIDERS_MAX];
    uint32_t vendor_count;
    /* The plain kernel: ENDED if the history has it, or if all its candidates failed; `built` is
     * set if another problem has it. */
    struct wpk_work_item plain;
    uint32_t plain_number; /* of the plain kernel's candidate, from 1 */
    char plain_verified_by[WPK_WORKER_NAME_MAX];
};

/* A strategy's answer to an ASK. */
struct wpk_asked {
    wpk_err err; /* no space, no such strategy or gene: the operators fail */
    char reason[WPK_REASON_MAX];
    bool refused;   /* the strategy proposes nothing until it is told more results */
    bool exhausted; /* the strategy has no more candidates */
    double size_log2;
    struct wpk_work_item *items; /* [count]; ENDED if known, else OPEN; texts taken */
    uint32_t count;
};

/* Free an answer, after its step or without one, with what the step has not taken. */
void wpk_opened_free(struct wpk_opened *opened);
void wpk_asked_free(struct wpk_asked *asked);

#endif
