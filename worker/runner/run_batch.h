/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: a candidate's samples, in turns with its anchor's if there is one, between two runs of
 * the sentinel. Where the samples (with an anchor, the ratios) scatter, something else ran on the
 * core: the batch is taken once more, and the steadier one counts. Without an anchor, the batch is
 * also taken once more where the sentinel's two times differ. No time is divided by the
 * sentinel's. */
#ifndef WPK_WORKER_RUNNER_RUN_BATCH_H
#define WPK_WORKER_RUNNER_RUN_BATCH_H

#include "schema/record.h"
#include "worker/engine_message.h"
#include "worker/measure.h"

#include <stdint.h>

struct wpk_run_batch {
    struct wpk_pair pair;
    double drift; /* of the sentinel: slower time / faster time - 1 */
    double noise; /* median absolute deviation / median: of the ratios, or of the samples */
};

/* Measure a candidate. `anchor` and `incumbent` are as in wpk_measure_pair; `sentinel_ns` returns
 * the time of one run of the sentinel.
 *   errors  the error that run or cool returned; `out` is then unchanged */
wpk_err wpk_run_batch_measure(const struct wpk_measure_subject *subject,
                              const struct wpk_measure_subject *anchor,
                              const struct wpk_policy *policy, double incumbent,
                              uint64_t (*sentinel_ns)(void), struct wpk_run_batch *out);

/* True if neither drift nor noise is too large, and no sample was taken of a throttled GPU. A
 * candidate that was raced out needs no exact time: its batch counts as steady. */
bool wpk_run_batch_is_steady(const struct wpk_run_batch *batch);

/* Describe for the log what disturbed the batch; "" for a steady one. */
void wpk_run_batch_describe(const struct wpk_run_batch *batch, char *out, size_t size);

/* A fixed workload, timed before and after each candidate. If its time changes, the machine has
 * changed (its clock frequency, another process), not the kernel. The record's log then says so; no
 * time is divided by the sentinel's. */

/* The fastest of a few runs of some tens of microseconds each: half a chain of dependent
 * multiplications and additions, half a walk through memory that the second-level cache holds. */
uint64_t wpk_sentinel_run_ns(void);

/* Hardware counters of one call, where the kernel (perf_event) and the machine offer them. */

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

/* The rounds of a duel: each contestant runs once in each round, and each begins a round in turn.
 * After 5 rounds a contestant takes no more turns if each of its times is more than 10 % above the
 * fastest one's median; nor does the fastest one, if it is the last.
 *
 * Speedups are relative to a vendor's time. Where a vendor's times scatter, something else ran on
 * the machine: all rounds are run once more, and those in which the vendor scatters less count. */

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
