/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of a duel: each contestant runs once in each round, and each begins a round in turn.
 * After 5 rounds a contestant takes no more turns if each of its times is more than 10 % above the
 * fastest one's median; nor does the fastest one, if it is the last.
 *
 * Speedups are relative to a vendor's time. Where a vendor's times scatter, something else ran on
 * the machine: all rounds are run once more, and those in which the vendor scatters less count. */
#ifndef WPK_WORKER_RUNNER_DUEL_ROUNDS_H
#define WPK_WORKER_RUNNER_DUEL_ROUNDS_H

#include "worker/engine_message.h"

struct wpk_duel_rounds {
    int count; /* contestants, <= WPK_DUEL_MAX */
    int round_count;
    bool is_vendor[WPK_DUEL_MAX]; /* [count] */
    /* Run one turn of a contestant and return its time in ns; 0: the contestant has failed, and
     * takes no more turns. */
    uint64_t (*take_turn)(void *user, int index);
    void *user;
};

/* Run all rounds.
 *   shape   out [count]; a contestant that failed has sample_count 0 */
void wpk_duel_rounds_play(const struct wpk_duel_rounds *rounds, struct wpk_timing *out);

#endif
