/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of one call, where the kernel (perf_event) and the machine offer them. */
#ifndef WPK_WORKER_COUNTERS_H
#define WPK_WORKER_COUNTERS_H

#include "schema/record.h"

/* Count over `repeat` calls and give the mean of one, summed over the threads that this process has
 * when counting begins: pools have started theirs by then, and what they spin between calls counts
 * too. `out->present` is false where there are no counters, or more threads than can be counted.
 *   errors  what run returned */
wpk_err wpk_counters_read(wpk_err (*run)(void *user), void *user, int repeat,
                          struct wpk_counters *out);

/* One of perf_event's, as linux/perf_event.h numbers them. */
struct wpk_counter_event {
    uint32_t type;
    uint64_t config;
};

#define WPK_COUNTER_EVENTS_MAX 4

/* The same for chosen events; one that could not be counted is 0.
 *   shape   events, out: [count], count <= WPK_COUNTER_EVENTS_MAX */
wpk_err wpk_counters_sum(wpk_err (*run)(void *user), void *user, int repeat,
                         const struct wpk_counter_event *events, int count, double *out);

#endif
