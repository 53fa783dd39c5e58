/* SPDX-License-Identifier: Apache-2.0 */
/* Heats: while a search goes on, its leaders are timed once more, in turns on one worker, as in a
 * final but in fewer rounds and without vendors. The fastest of many single times is likely to be a
 * lucky one. Progress shows the leader by the times of the last heat, and what ends a search early
 * or shares out a budget asks for it. A heat is held when the number of results has doubled.
 *
 * The strategy and the final are told nothing of it, and it is not stored: asks and contenders are
 * the same whenever a heat was held, and after a restart.
 *
 *   source  Karnin, Koren & Somekh, Almost optimal exploration in multi-armed bandits (successive
 *           halving), ICML 2013: 8 candidates in 7 rounds, then 4 in 15, those of the final */
#ifndef WPK_COORDINATOR_STATE_HEAT_H
#define WPK_COORDINATOR_STATE_HEAT_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_best;
struct wpk_coordinator;
struct wpk_search;

#define WPK_HEAT_FIRST 32 /* results before the first heat */
#define WPK_HEAT_ROUNDS 7 /* odd, so that the median is a sample */

/* Open a heat if one is due; end one that was held, or whose contender is lost. */
void wpk_heat_update(struct wpk_coordinator *c, struct wpk_search *search);
/* True if a heat waits for a worker. */
bool wpk_heat_is_open(const struct wpk_search *search);
/* The best candidate, by heats where it took part in one; NULL: there is none.
 *   shape   ns: median, minimum, median absolute deviation */
const struct wpk_best *wpk_heat_leader(const struct wpk_search *search, uint64_t ns[3]);

#endif
