/* SPDX-License-Identifier: Apache-2.0 */
/* How accurate an output is: its error relative to the output, and relative to the error of direct
 * evaluation on the same inputs. For every input set
 *
 *     E            = rms(y - y64) over the compared values; y64 is the reference
 *     of_rms       = E / rms(y64), on the uniform set
 *     times_direct = the largest over the sets of E / max(E of direct, u/4 rms(y64))
 *
 * with u the unit roundoff of the output's type. Because of the term in u, an output that is right
 * up to its own rounding passes even where direct evaluation is nearly exact. Sets on which direct
 * evaluation is exact do not count in times_direct: there outputs must be equal, bit for bit.
 * Outputs of integers are exact or wrong. */
#ifndef WPK_IR_REFERENCE_ACCURACY_H
#define WPK_IR_REFERENCE_ACCURACY_H

#include "schema/accuracy.h"
#include "schema/tensor.h"

/* Sums over the values of one input set; = {0} before the first value. */
struct wpk_accuracy_sums {
    double error;  /* sum of (y - y64)^2; infinite where some y is infinite or NaN */
    double value;  /* sum of y64^2 */
    int64_t count; /* values compared */
};

/* Errors over all input sets; = {0} before the first set. */
struct wpk_accuracy_errors {
    double of_rms;       /* of the uniform set */
    double times_direct; /* 0: nothing to compare with, or exact */
    int64_t count;       /* values compared in the set of times_direct */
};

/* 2^-p of a type with p significant bits; 0 for integers. */
double wpk_accuracy_unit(enum wpk_dtype dtype);
/* The largest number of a floating type; infinite for integers, which wrap. */
double wpk_accuracy_largest(enum wpk_dtype dtype);

/* Add the errors of `count` values, except of those whose reference is not finite, which must be
 * equal, and of those that a cast beside a step decides (WPK_REFERENCE_STEP), whose error is a
 * whole number of steps.
 *   shape   y, y64, magnitude [count]; magnitude as the reference gives it, NULL: no such cast */
void wpk_accuracy_add(struct wpk_accuracy_sums *sums, const double *y, const double *y64,
                      const double *magnitude, int64_t count);
/* E, at most DBL_MAX; 0 without values. */
double wpk_accuracy_error(const struct wpk_accuracy_sums *sums);
/* E / rms(y64); 0 when E is 0. */
double wpk_accuracy_of_rms(const struct wpk_accuracy_sums *sums);

/* Take a set's error into times_direct.
 *   unit    direct: E of direct evaluation on the same set and values */
void wpk_accuracy_fold(struct wpk_accuracy_errors *errors, enum wpk_dtype output,
                       const struct wpk_accuracy_sums *sums, double direct);

/* wpk_accuracy_admits_fresh for errors of any number of values: with the noise of that number. */
bool wpk_accuracy_stays_in(struct wpk_accuracy accuracy, const struct wpk_accuracy_errors *fresh);

/* Compares the outputs of a run with the reference interpreter. The error is given as a share of
 * the output, and as a multiple of the error of direct evaluation on the same inputs; of several
 * outputs the largest. Integers are compared bit for bit. An infinity or a NaN is right where the
 * reference, rounded to the output's type, is the same, or direct evaluation is. */

/* An argument of a kernel, with its data. */
struct wpk_check_tensor {
    const char *name; /* as in the operator */
    const struct wpk_tensor_type *type;
    const void *dense; /* [extent...] row-major, whatever the layout */
};

struct wpk_check {
    int64_t points;      /* number of compared points */
    double rms;          /* of the reference's values */
    double of_rms;       /* rms of the errors ÷ rms */
    double max_of_rms;   /* largest error ÷ rms */
    double times_direct; /* rms of the errors ÷ direct's, or ÷ a last place; 0: integers */
    double allowed;      /* largest times_direct of the class, for this number of points */
    bool passed;
};

/* Points of an output that are compared at most, and as many as some seconds allow. */
#define WPK_CHECK_POINTS_MAX 65536

/* Compare each output at up to `points_max` points, or as many as some seconds allow.
 *
 *   shape   op: the operator in whole form; tensors [input_count + output_count]: inputs and
 *           constants, then outputs
 *   errors  those of wpk_program_parse and wpk_reference_run_at; WPK_ECORRUPT a
 *           tensor that the operator does not have */
wpk_err wpk_check(const char *op, const struct wpk_check_tensor *tensors, int input_count,
                  int output_count, struct wpk_accuracy accuracy, int64_t points_max,
                  struct wpk_check *out, struct wpk_diag *diag);

#endif
