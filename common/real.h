/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions of doubles made of additions, multiplications and divisions alone, whose
 * results are therefore the same on every machine, compiler and C library. Their error is below
 * 1e-15 of the result. */
#ifndef WPK_COMMON_REAL_H
#define WPK_COMMON_REAL_H

/* e^x; 0 below -708, infinite above 709. */
double wpk_real_exp(double x);
/* The natural logarithm; -inf for 0, NaN below. */
double wpk_real_log(double x);
double wpk_real_tanh(double x);

#endif
