/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of a duel: each contestant has a turn in each, and each goes first in turn.
 *
 * The vendor's times are what speedups are relative to. Where one of them scatters, something else
 * ran on the machine: the rounds are played once more, for all, and those with the steadier vendor
 * count. */
#ifndef WPK_WORKER_DUEL_ROUNDS_H
#define WPK_WORKER_DUEL_ROUNDS_H

#include "worker/message.h"

struct wpk_duel_rounds {
    int count; /* contestants, <= WPK_DUEL_MAX */
    int round_count;
    bool is_vendor[WPK_DUEL_MAX]; /* [count] */
    /* A turn of a contestant: its time; 0 where it is out, which it stays. */
    uint64_t (*take_turn)(void *user, int index);
    void *user;
};

/* shape   out [count]; sample_count 0: the contestant went out */
void wpk_duel_rounds_play(const struct wpk_duel_rounds *rounds, struct wpk_timing *out);

#endif
