/* SPDX-License-Identifier: Apache-2.0 */
/* Who is to be looked at when: a heap of timers that lie in what they are for. Setting one is
 * O(log n), the next that is due is O(1). `= {0}` is a timer that is not set, and an empty heap. */
#ifndef WPK_COORDINATOR_STATE_TIMER_H
#define WPK_COORDINATOR_STATE_TIMER_H

#include "common/err.h"

#include <stdint.h>

struct wpk_timer {
    uint64_t due_ns;
    uint32_t place; /* in the heap, from 1; 0: not set */
    void *owner;    /* what it is for; whoever sets it first fills it in */
};

struct wpk_timers {
    struct wpk_timer **items; /* owned; [count], the earliest first */
    uint32_t count;
    uint32_t capacity;
};

void wpk_timers_fini(struct wpk_timers *timers);
/* Set it, or set it anew. */
void wpk_timer_set(struct wpk_timers *timers, struct wpk_timer *timer, uint64_t due_ns);
/* Does nothing to one that is not set. */
void wpk_timer_cancel(struct wpk_timers *timers, struct wpk_timer *timer);
/* Take out one that is due; NULL when none is. */
struct wpk_timer *wpk_timers_next(struct wpk_timers *timers, uint64_t now_ns);

#endif
