/* SPDX-License-Identifier: Apache-2.0 */
/* Medians and their intervals, without an assumption about the distribution of the noise. */
#ifndef WPK_BENCH_STATS_H
#define WPK_BENCH_STATS_H

/* Sort in ascending order, in place. */
void bench_stats_sort(double *values, int count);
/* The median of sorted values; count >= 1. */
double bench_stats_median(const double *sorted, int count);

/* Find the sign test's interval: the narrowest pair of order statistics, symmetric about the
 * middle, that holds the true median with at least the given confidence. If no pair does, as with
 * fewer than 5 values and 0.9, the result is the smallest and the largest value.
 *
 *   shape   sorted [count], count >= 1
 *   unit    confidence in (0, 1)
 *   source  the number of values below the median is binomial(count, 1/2)
 */
void bench_stats_interval(const double *sorted, int count, double confidence, double *low,
                          double *high);

/* Wilcoxon's signed-rank test of pairs: the probability, on both sides, that a[i] - b[i] scatters
 * about 0. Equal pairs do not count; ties share their ranks; the sum of ranks is taken as normal,
 * which holds from some ten pairs on. 1 if all pairs are equal.
 *
 *   shape   a, b [count], count <= 1024; *above, *below: pairs in which a is above or below b
 *   source  Wilcoxon, Individual comparisons by ranking methods, 1945
 */
double bench_stats_wilcoxon(const double *a, const double *b, int count, int *above, int *below);

#endif
