/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stats.h"

#include "common/err.h"

#include <math.h>
#include <stdlib.h>

#define PAIRS_MAX 1024

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_stats_sort(double *values, int count)
{
    WPK_ASSERT(count >= 0);
    qsort(values, (size_t)count, sizeof(values[0]), compare_doubles);
}

double bench_stats_median(const double *sorted, int count)
{
    WPK_ASSERT(count > 0);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

void bench_stats_interval(const double *sorted, int count, double confidence, double *low,
                          double *high)
{
    WPK_ASSERT(count > 0);
    WPK_ASSERT(confidence > 0 && confidence < 1);
    /* The pair (i, count-1-i) misses the median with probability 2 P(fewer than i+1 below it). */
    double term = exp2(-(double)count); /* P(exactly 0 below) */
    double below = term;
    int outer = 0;
    for (int i = 1; i <= (count - 1) / 2; i++) {
        term *= (double)(count - i + 1) / i;
        below += term;
        if (1 - 2 * below < confidence) {
            break;
        }
        outer = i;
    }
    *low = sorted[outer];
    *high = sorted[count - 1 - outer];
}

static int compare_sizes(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a);
    const double y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

double bench_stats_wilcoxon(const double *a, const double *b, int count, int *above, int *below)
{
    double difference[PAIRS_MAX], ranks = 0, ties = 0;
    int n = 0;
    WPK_ASSERT(count <= PAIRS_MAX);
    *above = *below = 0;
    for (int i = 0; i < count; i++) {
        difference[n] = a[i] - b[i];
        *above += difference[n] > 0;
        *below += difference[n] < 0;
        n += a[i] > b[i] || a[i] < b[i];
    }
    if (n == 0) {
        return 1;
    }
    qsort(difference, (size_t)n, sizeof(difference[0]), compare_sizes);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && compare_sizes(&difference[i], &difference[end]) == 0; end++) {
        }
        double tied = end - i;
        for (int k = i; k < end; k++) {
            ranks += difference[k] > 0 ? (i + 1 + end) / 2.0 : 0;
        }
        ties += tied * tied * tied - tied;
    }
    double deviation = sqrt(n * (n + 1.0) * (2 * n + 1.0) / 24 - ties / 48);
    double distance = fmax(fabs(ranks - n * (n + 1.0) / 4) - 0.5, 0);
    return fmin(erfc(distance / deviation / sqrt(2)), 1);
}
