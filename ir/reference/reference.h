/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter, which defines what a program means. Every kernel is compared with it.
 *
 * Floats are doubles; reductions of them accumulate in double, intermediates keep double precision,
 * and f16, bf16 inputs are read exactly. Integers are exact: they wrap, or saturate, as their types
 * and casts say. */
#ifndef WPK_IR_REFERENCE_REFERENCE_H
#define WPK_IR_REFERENCE_REFERENCE_H

#include "ir/program.h"
#include "schema/choice.h"

/* Larger programs are computed at some points only. Limits of the innermost iterations of all
 * stages, which take seconds, and of the elements that the stages write, 16 bytes each. */
#define WPK_REFERENCE_WHOLE_MAX 1000000000
#define WPK_REFERENCE_WHOLE_ELEMENTS_MAX ((int64_t)1 << 26)

/* Magnitude that marks integers which rounding errors may change. Where a float is truncated, or
 * cast to an integer, beside a step, rounding errors decide on the side, and the result's magnitude
 * is this, far above all others, for each integer by which the result may differ. Sums and products
 * of integers carry the mark along; a float made of a marked integer has no useful tolerance.
 * Integers without the mark are exact. */
#define WPK_REFERENCE_STEP 0x1p80
/* Distance, relative to the magnitude, at which a float is beside a step: 8 u of f32. */
#define WPK_REFERENCE_UNSURE 0x1p-21

/* The arguments of one evaluation: dense, row-major, without padding, as doubles, which
 * wpk_convert_widen makes of other types, or as cells, which wpk_convert_to_cells makes. */
struct wpk_reference_args {
    const double *tensor[WPK_TENSORS_MAX]; /* by tensor id: inputs and constants; NULL elsewhere */
    const char *name[WPK_TENSORS_MAX]; /* of arguments, for errors; NULL: those of the program */
    bool cells; /* i64 arguments and outputs are cells; else the nearest doubles */
};

/* Compute the program's output, of several the first (wpk_program_view() has the others), and, for
 * the tolerance, its magnitude: the output with the absolute value of every term, which for each
 * point is the sum of |terms| through sums and products.
 *
 *   shape   value, magnitude: [output extents...] row-major; magnitude may be NULL
 *   owns    caller owns all arrays; intermediates are freed by the call
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED
 *   speed   at most a few ns per multiply-add: 118 million of them in about a second, one core
 */
wpk_err wpk_reference_run(const struct wpk_program *program, const struct wpk_reference_args *args,
                          double *value, double *magnitude, struct wpk_diag *diag);

/* The same at chosen points only, for programs that are too large to compute whole. Parts of
 * intermediates are computed on demand, and again only where the previous point needed others.
 *
 *   shape   points [count][output rank] indices; value, magnitude [count]
 */
wpk_err wpk_reference_run_at(const struct wpk_program *program,
                             const struct wpk_reference_args *args, const int64_t *points,
                             int64_t count, double *value, double *magnitude,
                             struct wpk_diag *diag);

/* Set *out to the number of points, from the first on, that take at most iterations_max iterations
 * together. The count includes the parts of intermediates that each point needs.
 *   shape   points [count][output rank]; out: 0 to count
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED */
wpk_err wpk_reference_points_within(const struct wpk_program *program, const int64_t *points,
                                    int64_t count, double iterations_max, int64_t *out,
                                    struct wpk_diag *diag);

/* The self-test of a choice: output values at some points, computed by the interpreter. */

/* Draw the inputs of the seed (schema/draw.h) and compute each output at a few of its points, its
 * two corners among them. Tensors have their canonical names, as in recipes and manifests. The
 * tolerance is a fraction of the largest sum of |terms|, and 0 for integers: every algorithm is
 * within it, and a wrong loop is not. If the interpreter would take too long, or an output has no
 * finite value, that output has no points.
 *
 *   shape   out->output [outputs->count], in the order of `outputs`
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED */
wpk_err wpk_selftest_make(const struct wpk_program *program, uint64_t seed,
                          const struct wpk_choice_list *outputs, struct wpk_choice_test *out,
                          struct wpk_diag *diag);

#endif
