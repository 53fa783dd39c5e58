/* SPDX-License-Identifier: Apache-2.0 */
#include "common/format.h"

#include <math.h>

#define LN2_HIGH 0x1.62e42feep-1 /* its last bits are 0: a product by an exponent is exact */
#define LN2_LOW 0x1.a39ef35793c76p-33

double wpk_real_exp(double x)
{
    if (isnan(x) || x > 709 || x < -708) {
        return isnan(x) ? x : x > 0 ? HUGE_VAL : 0;
    }
    double n = rint(x / (LN2_HIGH + LN2_LOW));
    double r = x - n * LN2_HIGH - n * LN2_LOW;
    double sum = 1;
    for (int k = 14; k > 0; k--) { /* the power series, by Horner's rule: |r| < 0.35 */
        sum = 1 + sum * r / k;
    }
    return ldexp(sum, (int)n);
}

double wpk_real_log(double x)
{
    int exponent = 0;
    if (isnan(x) || x <= 0 || isinf(x)) {
        return x == 0 ? -HUGE_VAL : x < 0 ? NAN : x;
    }
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    /* log(m) = 2 artanh(s), |s| < 0.172 */
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 21; k > 0; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return exponent * LN2_HIGH + (2 * s * sum + exponent * LN2_LOW);
}

double wpk_real_tanh(double x)
{
    double e = wpk_real_exp(-2 * fabs(x));
    double t = (1 - e) / (1 + e);
    return x < 0 ? -t : t;
}

int wpk_real_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

int wpk_u64_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}
