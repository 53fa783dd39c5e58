/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/timer.h"

#include <stdlib.h>
#include <string.h>

void wpk_timers_fini(struct wpk_timers *timers)
{
    free(timers->items);
    memset(timers, 0, sizeof *timers);
}

static void place(struct wpk_timers *timers, struct wpk_timer *timer, uint32_t at)
{
    timers->items[at] = timer;
    timer->place = at + 1;
}

/* Move the timer from `at` towards the front, then towards the back, to where it belongs. */
static void sift(struct wpk_timers *timers, struct wpk_timer *timer, uint32_t at)
{
    while (at > 0 && timers->items[(at - 1) / 2]->due_ns > timer->due_ns) {
        place(timers, timers->items[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    for (uint32_t child = 2 * at + 1; child < timers->count; child = 2 * at + 1) {
        if (child + 1 < timers->count &&
            timers->items[child + 1]->due_ns < timers->items[child]->due_ns) {
            child++;
        }
        if (timers->items[child]->due_ns >= timer->due_ns) {
            break;
        }
        place(timers, timers->items[child], at);
        at = child;
    }
    place(timers, timer, at);
}

void wpk_timer_set(struct wpk_timers *timers, struct wpk_timer *timer, uint64_t due_ns)
{
    timer->due_ns = due_ns;
    if (timer->place == 0) {
        if (timers->count == timers->capacity) {
            timers->capacity = timers->capacity == 0 ? 64 : timers->capacity * 2;
            struct wpk_timer **grown =
                realloc(timers->items, timers->capacity * sizeof(struct wpk_timer *));
            WPK_ASSERT(grown != NULL);
            timers->items = grown;
        }
        place(timers, timer, timers->count++);
    }
    sift(timers, timer, timer->place - 1);
}

void wpk_timer_cancel(struct wpk_timers *timers, struct wpk_timer *timer)
{
    if (timer->place == 0) {
        return;
    }
    uint32_t at = timer->place - 1;
    WPK_ASSERT(at < timers->count && timers->items[at] == timer);
    struct wpk_timer *last = timers->items[--timers->count];
    timer->place = 0;
    if (last != timer) {
        sift(timers, last, at);
    }
}

struct wpk_timer *wpk_timers_next(struct wpk_timers *timers, uint64_t now_ns)
{
    if (timers->count == 0 || timers->items[0]->due_ns > now_ns) {
        return NULL;
    }
    struct wpk_timer *first = timers->items[0];
    wpk_timer_cancel(timers, first);
    return first;
}
