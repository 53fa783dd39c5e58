/* SPDX-License-Identifier: Apache-2.0 */
/* A search's asks: the window of those not told yet, and the best of the others (asks.c). */
#ifndef WPK_COORDINATOR_STATE_ASKS_H
#define WPK_COORDINATOR_STATE_ASKS_H

#include "coordinator/state/work_item.h"

struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

#define WPK_BEST_MAX 16      /* asks that a search remembers, to replace rejected finalists */
#define WPK_WINDOW_MAX 65536 /* asks in the window of one search */

/* OPEN asks of a window, in the order in which they are given out. */
struct wpk_open_list {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

/* One of the best asks, with its trial in the search. */
struct wpk_best {
    uint32_t number;
    char *candidate; /* owned */
    struct wpk_trial_summary trial;
    uint64_t worker; /* name hash of the worker that measured it; 0: unknown */
    uint64_t again_ns[3]; /* in the last heat: median, minimum, median absolute deviation */
    double again_ratio;   /* to the anchor, by that; 0: it took part in none */
};

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

#endif
