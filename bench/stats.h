/* SPDX-License-Identifier: Apache-2.0 */
/* Medians and their intervals, without any assumption about how the noise is distributed. */
#ifndef WPK_BENCH_STATS_H
#define WPK_BENCH_STATS_H

/* Ascending, in place. */
void bench_stats_sort(double *values, int count);
/* Of sorted values; count >= 1. */
double bench_stats_median(const double *sorted, int count);

/* The narrowest pair of order statistics, symmetric about the middle, that holds the true median
 * with at least the given confidence: the sign test's interval. With fewer than 5 values no pair
 * reaches 0.9, and smallest and largest are returned.
 *
 *   shape   sorted [count], count >= 1
 *   unit    confidence in (0, 1)
 *   source  the number of values below the median is binomial(count, 1/2)
 */
void bench_stats_interval(const double *sorted, int count, double confidence, double *low,
                          double *high);

#endif
