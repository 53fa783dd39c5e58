/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: a heap of timers, each embedded in the struct that it is for. Setting one is O(log n),
 * looking whether one is due is O(1). `= {0}` is a timer that is not set, and an empty heap. */
#ifndef WPK_COORDINATOR_STATE_TIMER_H
#define WPK_COORDINATOR_STATE_TIMER_H

#include "common/err.h"

#include <stdint.h>

struct wpk_timer {
    uint64_t due_ns;
    uint32_t place; /* in the heap, from 1; 0: not set */
    void *owner;    /* the struct that it is for; filled in before it is set */
};

struct wpk_timers {
    struct wpk_timer **items; /* owned; [count], the earliest first */
    uint32_t count;
    uint32_t capacity;
};

void wpk_timers_fini(struct wpk_timers *timers);
/* Set the timer, or move it to another time. */
void wpk_timer_set(struct wpk_timers *timers, struct wpk_timer *timer, uint64_t due_ns);
/* Take the timer out of the heap, if it is set. */
void wpk_timer_cancel(struct wpk_timers *timers, struct wpk_timer *timer);
/* Take the earliest timer out, if it is due; NULL: none is. */
struct wpk_timer *wpk_timers_next(struct wpk_timers *timers, uint64_t now_ns);

#endif
