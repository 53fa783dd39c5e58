/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of times in fixed memory: 64 steps for each power of two, so a time is known within
 * 1.6 %. */
#ifndef WPK_BENCH_HTTP_LOAD_TIMES_H
#define WPK_BENCH_HTTP_LOAD_TIMES_H

#include <stdint.h>

#define BENCH_TIMES_STEPS 64
#define BENCH_TIMES_SIZE (BENCH_TIMES_STEPS * 59)

/* `= {0}` is empty. */
struct bench_times {
    uint64_t counts[BENCH_TIMES_SIZE];
    uint64_t count;
    uint64_t max_ns;
};

void bench_times_add(struct bench_times *times, uint64_t ns);
/* The time that the share `quantile`, in [0, 1], of all times does not exceed; 0 without times. */
double bench_times_quantile_us(const struct bench_times *times, double quantile);

#endif
