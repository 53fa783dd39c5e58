/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the error of a result, and tells whether the error is within an accuracy class.
 *
 * The yardstick is direct evaluation: the operator's loops in f32, where each product and each sum
 * is rounded and terms are added in order. Direct evaluation and the reference are written out in
 * this folder rather than taken from ir/, so that a fault of ir/ shows. */
#ifndef WPK_BENCH_ACCURACY_H
#define WPK_BENCH_ACCURACY_H

#include "bench/op.h"
#include "schema/accuracy.h"

/* The error E = rms(y - y64) of one result, where y64 is the result in double precision, over
 * BENCH_ACCURACY_POINTS elements, or all elements when there are fewer. */
struct bench_accuracy {
    double of_rms; /* E / rms(y64) */
    /* E / max(E of direct evaluation, u/4 rms(y64)), where u is f32's unit roundoff */
    double times_direct;
};

#define BENCH_ACCURACY_POINTS 4096

/* One element by direct evaluation.
 *
 *   shape   operands [operand count][their elements]; index < elements of the output
 */
float bench_direct(const struct bench_op *op, const float *const *operands, int64_t index);

/* Compare a whole result with the reference.
 *
 *   shape   result [elements of the output]
 */
struct bench_accuracy bench_accuracy_measure(const struct bench_op *op,
                                             const float *const *operands, const float *result);

/* True if the error is within the class. NaN is within no class. */
bool bench_accuracy_fits(struct bench_accuracy accuracy, struct wpk_accuracy wanted);

#endif
