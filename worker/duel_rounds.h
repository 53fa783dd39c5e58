/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of a duel: each contestant runs once in each round, and the first place goes round.
 *
 * Speedups are relative to a vendor's time. Where a vendor's times scatter, something else ran on
 * the machine: all rounds are played once more, and the play in which the vendor scatters less
 * counts. */
#ifndef WPK_WORKER_DUEL_ROUNDS_H
#define WPK_WORKER_DUEL_ROUNDS_H

#include "worker/message.h"

struct wpk_duel_rounds {
    int count; /* contestants, <= WPK_DUEL_MAX */
    int round_count;
    bool is_vendor[WPK_DUEL_MAX]; /* [count] */
    /* Run one turn of a contestant: its time; 0: it has failed, and takes no more turns. */
    uint64_t (*take_turn)(void *user, int index);
    void *user;
};

/* shape   out [count]; sample_count 0: the contestant has failed */
void wpk_duel_rounds_play(const struct wpk_duel_rounds *rounds, struct wpk_timing *out);

#endif
