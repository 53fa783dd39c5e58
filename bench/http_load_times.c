/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/http_load_times.h"

/* Below BENCH_TIMES_STEPS each number has its own step; from there on its highest seven bits do. */
static uint32_t step_of(uint64_t ns)
{
    uint32_t shift = 0;
    while (ns >> shift >= 2 * BENCH_TIMES_STEPS) {
        shift++;
    }
    return shift * BENCH_TIMES_STEPS + (uint32_t)(ns >> shift);
}

/* The most that belongs to a step. */
static uint64_t top_of(uint32_t step)
{
    uint32_t shift = step < 2 * BENCH_TIMES_STEPS ? 0 : step / BENCH_TIMES_STEPS - 1;
    uint64_t high = step - shift * BENCH_TIMES_STEPS;
    return ((high + 1) << shift) - 1;
}

void bench_times_add(struct bench_times *times, uint64_t ns)
{
    uint32_t step = step_of(ns);
    times->counts[step < BENCH_TIMES_SIZE ? step : BENCH_TIMES_SIZE - 1]++;
    times->count++;
    times->max_ns = ns > times->max_ns ? ns : times->max_ns;
}

double bench_times_quantile_us(const struct bench_times *times, double quantile)
{
    uint64_t below = 0;
    for (uint32_t i = 0; i < BENCH_TIMES_SIZE && times->count > 0; i++) {
        below += times->counts[i];
        if ((double)below >= quantile * (double)times->count && below > 0) {
            uint64_t top = top_of(i) < times->max_ns ? top_of(i) : times->max_ns;
            return (double)top / 1e3;
        }
    }
    return 0;
}
