/* SPDX-License-Identifier: Apache-2.0 */
/* How accurate an output is: its error as a share of the output, and as a multiple of what direct
 * evaluation errs on the same inputs. Of every input set
 *
 *     E            = rms(y - y64) over the compared values; y64 is the reference
 *     of_rms       = E / rms(y64), on the uniform set
 *     times_direct = the largest over the sets of E / max(E of direct, u/4 rms(y64))
 *
 * with u the unit roundoff of the output's type: an output that is right up to its own rounding is
 * right, however exact direct evaluation happens to be. Sets on which direct is exact count in no
 * ratio: there the comparison of bits decides. Outputs of integers are exact or wrong. */
#ifndef WPK_OP_ACCURACY_H
#define WPK_OP_ACCURACY_H

#include "schema/accuracy.h"
#include "schema/tensor.h"

/* Of one input set; = {0} before the first value. */
struct wpk_accuracy_sums {
    double error;  /* sum of (y - y64)^2; infinite where some y is no number */
    double value;  /* sum of y64^2 */
    int64_t count; /* values compared */
};

/* Of all input sets; = {0} before the first. */
struct wpk_accuracy_errors {
    double of_rms;       /* of the uniform set */
    double times_direct; /* 0: nothing to compare with, or exact */
    int64_t count;       /* values compared in the set of times_direct */
};

/* 2^-p of a type with p significant bits; 0 for integers. */
double wpk_accuracy_unit(enum wpk_dtype dtype);

/* Add values. Left out are those whose reference is not finite, which must be equal, not close, and
 * those that a cast beside a step decides (WPK_REFERENCE_STEP), which are off by steps or not at
 * all.
 *   shape   y, y64, magnitude [count]; magnitude as the reference gives it, NULL: no such cast */
void wpk_accuracy_add(struct wpk_accuracy_sums *sums, const double *y, const double *y64,
                      const double *magnitude, int64_t count);
/* E; 0 of no values, at most DBL_MAX. */
double wpk_accuracy_error(const struct wpk_accuracy_sums *sums);
/* E / rms(y64); 0 when E is. */
double wpk_accuracy_of_rms(const struct wpk_accuracy_sums *sums);

/* Take a set into times_direct.
 *   unit    direct: E of direct evaluation on the same set and values */
void wpk_accuracy_fold(struct wpk_accuracy_errors *errors, enum wpk_dtype output,
                       const struct wpk_accuracy_sums *sums, double direct);

/* wpk_accuracy_admits_fresh with the noise of the values that were compared, however few. */
bool wpk_accuracy_stays_in(struct wpk_accuracy accuracy, const struct wpk_accuracy_errors *fresh);

#endif
