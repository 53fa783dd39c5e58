/* SPDX-License-Identifier: Apache-2.0 */
/* What a program means: the interpreter that every kernel is compared with.
 *
 * Values are doubles; reductions accumulate in double; intermediates keep double precision except
 * that integer types wrap or saturate as their casts say and f16, bf16 inputs are read exactly. */
#ifndef WPK_OP_REFERENCE_H
#define WPK_OP_REFERENCE_H

#include "op/program.h"

/* Up to these all points are computed: innermost iterations of all stages, which are seconds, and
 * elements that the stages write, of which each takes 16 bytes. */
#define WPK_REFERENCE_WHOLE_MAX 1000000000
#define WPK_REFERENCE_WHOLE_ELEMENTS_MAX ((int64_t)1 << 26)

/* A float is cast to an integer beside a step: rounding errors decide the side. For each integer by
 * which the result may then differ its magnitude is this, far above what others have, and sums and
 * products of integers carry it along; a float that they become has no tolerance to speak of. An
 * integer that is not beside a step is exact. */
#define WPK_REFERENCE_STEP 0x1p80
/* Error of a float that may cross a step, over its magnitude: 8 u of f32. */
#define WPK_REFERENCE_UNSURE 0x1p-21

/* The arguments of one evaluation: dense row-major, padding not included, in element type double
 * (the interpreter's own; wpk_convert_widen makes them from f32 and the rest). */
struct wpk_reference_args {
    const double *tensor[WPK_TENSORS_MAX]; /* by tensor id: inputs and constants; NULL elsewhere */
};

/* Compute the program's output and, for the tolerance, the same with every term's absolute value:
 * for each point the sum of |terms| that went into it through sums and products.
 *
 *   shape   value, magnitude: [output extents...] row-major; magnitude may be NULL
 *   owns    caller owns all; intermediates live in memory of the call
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED
 *   speed   at most a few ns per multiply-add: 118 million of them in about a second, one core
 */
wpk_err wpk_reference_run(const struct wpk_program *program, const struct wpk_reference_args *args,
                          double *value, double *magnitude, struct wpk_diag *diag);

/* The same at chosen points only, for programs too large to compute whole. Intermediates needed
 * are computed on demand, and again only where the point before needed another part of them.
 *
 *   shape   points [count][output rank] indices; value, magnitude [count]
 */
wpk_err wpk_reference_run_at(const struct wpk_program *program,
                             const struct wpk_reference_args *args, const int64_t *points,
                             int64_t count, double *value, double *magnitude,
                             struct wpk_diag *diag);

/* How many of the points, from the first on, take at most so many iterations together: nobody
 * knows beforehand what a point needs of the intermediates.
 *   shape   points [count][output rank]; out: 0 to count
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED */
wpk_err wpk_reference_points_within(const struct wpk_program *program, const int64_t *points,
                                    int64_t count, double iterations_max, int64_t *out,
                                    struct wpk_diag *diag);

#endif
