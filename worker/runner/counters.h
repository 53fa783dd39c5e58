/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of one call, where the kernel (perf_event) and the machine offer them. */
#ifndef WPK_WORKER_RUNNER_COUNTERS_H
#define WPK_WORKER_RUNNER_COUNTERS_H

#include "schema/record.h"

/* Fill `out` with the counts of one call, as the mean of `repeat` calls. Counts are summed over the
 * threads that this process has when counting begins: thread pools have started by then, and their
 * spinning between calls counts too. `out->present` is false where the machine has no counters, or
 * the process has more threads than can be counted.
 *   errors  the error that run returned */
wpk_err wpk_counters_read(wpk_err (*run)(void *user), void *user, int repeat,
                          struct wpk_counters *out);

/* An event of perf_event, numbered as in linux/perf_event.h. */
struct wpk_counter_event {
    uint32_t type;
    uint64_t config;
};

#define WPK_COUNTER_EVENTS_MAX 4

/* The same for chosen events. The count of an event that could not be counted is 0.
 *   shape   events, out: [count], count <= WPK_COUNTER_EVENTS_MAX */
wpk_err wpk_counters_sum(wpk_err (*run)(void *user), void *user, int repeat,
                         const struct wpk_counter_event *events, int count, double *out);

#endif
