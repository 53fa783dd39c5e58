/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stats.h"

#include "common/err.h"

#include <math.h>
#include <stdlib.h>

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
