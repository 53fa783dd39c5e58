/* SPDX-License-Identifier: Apache-2.0 */
/* A search's asks: the window of those under way, and what is remembered of the others (asks.c). */
#ifndef WPK_COORDINATOR_STATE_ASKS_H
#define WPK_COORDINATOR_STATE_ASKS_H

#include "coordinator/state/work_item.h"

struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

#define WPK_BEST_MAX 16      /* that a search remembers: who follows when finalists are rejected */
#define WPK_WINDOW_MAX 65536 /* asks under way of one search */

/* Asks of a window that are OPEN, in the order in which they are given out. */
struct wpk_open_list {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

/* An ask that did well, with the time that it got in the search. */
struct wpk_best {
    uint32_t number;
    char *candidate; /* owned */
    struct wpk_trial_summary trial;
    uint64_t worker; /* wpk_table_hash() of the name of who measured it; 0: not known any more */
};

void wpk_asks_init(struct wpk_search *search);
void wpk_asks_fini(struct wpk_search *search);
/* The next ask; `ask` is taken, with its text. */
void wpk_asks_add(struct wpk_search *search, const struct wpk_work_item *ask);
/* Ask `number` of the search; NULL when it is not in its window. */
struct wpk_work_item *wpk_asks_get(const struct wpk_search *search, uint32_t number);
/* An ask of the window is open: last of its list, or first; or is not any more. */
void wpk_asks_open(struct wpk_search *search, uint32_t number, bool first);
void wpk_asks_unopen(struct wpk_search *search, uint32_t number);
/* The first of the list that is not to be tried elsewhere first; WPK_OPEN_END: none. */
uint32_t wpk_asks_next(const struct wpk_search *search, const struct wpk_open_list *list,
                       const struct wpk_worker *worker);
/* An ask of the window has ended: count it, and keep it if it is one of the best. */
void wpk_asks_count(struct wpk_search *search, uint32_t number, uint64_t worker);
/* Tell the strategy every ask that has ended and whose turn it is; they leave the window. */
void wpk_asks_tell(struct wpk_coordinator *c, struct wpk_search *search);
/* What did not verify cannot win any more, nor can what comes to the same code. */
void wpk_asks_reject(struct wpk_search *search, const char *artifact, enum wpk_outcome outcome);
/* It is not there to be timed. False where it is none of the best. */
bool wpk_asks_lose(struct wpk_search *search, const char *artifact);

#endif
