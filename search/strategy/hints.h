/* SPDX-License-Identifier: Apache-2.0 */
/* Hints: candidates with times that were measured elsewhere. A search asks for the fastest of them
 * after its constructed candidates. By how much their times here differ from those elsewhere says
 * what the times of the others come to here: these are learnt, and not asked for again. */
#ifndef WPK_SEARCH_STRATEGY_HINTS_H
#define WPK_SEARCH_STRATEGY_HINTS_H

#include "search/strategy/seen.h"
#include "search/snapshot.h"
#include "search/strategy/strategy.h"

#define WPK_HINTS_ASKED 8

/* `= {0}` has none. */
struct wpk_hints {
    const struct wpk_hint *hint; /* borrowed; [count], fastest first */
    int count;
    int next;        /* the first one that may be asked for */
    int asked, told; /* hints asked for, and told */
    double shift;    /* sum of the logs of times here over those elsewhere */
    int timed;       /* hints in that sum */
    bool learnt;     /* the others */
};

/* True if there is a hint that may be asked for. */
bool wpk_hints_wait(const struct wpk_hints *hints);
/* Take the next hint that was not seen.   shape  returns its number; -1: none is left */
int wpk_hints_take(struct wpk_hints *hints, const struct wpk_seen *seen,
                   const struct wpk_space *space);
/* A hint was timed here, or failed.   shape  time: log; +inf if it failed */
void wpk_hints_tell(struct wpk_hints *hints, int number, double time);
/* The next hint that is to be learnt, after all those that were asked for are told; NULL: none.
 *   shape   *next: 0 at first; *time: what it comes to here, a log as in wpk_hints_tell() */
const struct wpk_hint *wpk_hints_learn(struct wpk_hints *hints, int *next, double *time);

void wpk_hints_save(const struct wpk_hints *hints, struct wpk_buf *out);
void wpk_hints_load(struct wpk_hints *hints, struct wpk_snapshot_reader *reader);

#endif
