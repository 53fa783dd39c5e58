/* SPDX-License-Identifier: Apache-2.0 */
/* Judging whether a candidate's output is right.
 *
 * The output must equal the reference where no computation rounds (wpk_answers.exact): programs of
 * sums and products on integers, and programs that only move, choose and scale on any inputs, if
 * the algorithm multiplies with no constants of its own. Elsewhere a tolerance holds:
 *
 *     |y - ref| <= u (6 k sum|terms| + 2 sqrt(n) |ref|) + v |ref| + the least normal number
 *
 *   u  unit roundoff of the accumulator (2^-24 for f32), v that of the output's type
 *   n  terms of the longest reduction
 *   k  how many times direct evaluation's error a kernel's may be: the rule's `times`, the same for
 *      every algorithm. Where an algorithm transforms its inputs, sum|terms| is the largest of all
 *      points, because the transforms of a tile spread its largest error
 *
 * An output of integers must be exact, except where a float beside a step was cast: such an output
 * may be off by the steps that rounding can cross (WPK_REFERENCE_STEP). Where the reference is
 * infinite or NaN, the output must be the same.
 *
 * The form is statistical, not the worst case n u sum|terms|, which would let a product in bf16
 * pass: rounding errors are independent of each other. Terms of random sign leave an error of
 * 0.4 u sum|terms| (one sigma; the partial sums are a random walk), 2 at the worst of 10^5 points;
 * terms of one sign leave 0.24 u sqrt(n) |ref|. Both constants are about three times that.
 *   source  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.8 and 4.2;
 *           verify_test.c holds honest, truncated and bf16 sums against it */
#ifndef WPK_WORKER_VERIFY_VERIFY_H
#define WPK_WORKER_VERIFY_VERIFY_H

#include "ir/program.h"
#include "worker/verify/answers.h"

/* The k of all rules; accuracy classes allow less, as rms errors (schema/accuracy.h). */
#define WPK_VERIFY_TIMES 16.0

/* How a candidate is judged; the same for all of its input sets. */
struct wpk_verify_rule {
    bool exact;      /* the op and the algorithm only add, multiply, compare and choose */
    bool transforms; /* the algorithm multiplies with constants of its own */
    double times;    /* k, >= 1 */
};

/* The worst point so far, and the errors of whole sets; = {0} before the first. */
struct wpk_verify_errors {
    double max;           /* largest |y - ref|; DBL_MAX where the output is not a number */
    double max_tolerance; /* the tolerance at that point */
    double ratio;         /* largest |y - ref| / tolerance, at most DBL_MAX; > 1: wrong */
    /* Where the ratio is largest: index into the answers, tolerance, output, reference. */
    int64_t point;
    double tolerance;
    double value;
    double reference;
    struct wpk_accuracy_sums sums;       /* of the set that is being compared */
    struct wpk_accuracy_errors accuracy; /* rms errors, of the floating outputs' sets */
};

/* True if the op computes exactly on small integers. */
bool wpk_verify_is_exact(const struct wpk_program *op);
/* True if the derived program multiplies with constants of its own (Winograd's matrices). */
bool wpk_verify_has_transforms(const struct wpk_program *program);

/* Compare the output of one draw of the set's inputs with its answers. Fold the worst point into
 * `errors`, and after the last draw the rms error of all draws. Draws come in order.
 *   shape   output: dense [extent...] of the op's output tensor, in its type */
void wpk_verify_compare(const struct wpk_program *op, const struct wpk_answers *answers, int draw,
                        const struct wpk_verify_rule *rule, const void *output,
                        struct wpk_verify_errors *errors);

/* |value - reference| / tolerance of the index-th answer, as in wpk_verify_errors.ratio. */
double wpk_verify_ratio(const struct wpk_program *op, const struct wpk_answers *answers,
                        const struct wpk_verify_rule *rule, int64_t index, double value);

/* Describe the worst point for the log: "Y[0,3,27,27] is 1.25, should be 1.5 within 1e-05". */
void wpk_verify_describe(const struct wpk_program *op, const struct wpk_answers *answers,
                         const struct wpk_verify_errors *errors, char *out, size_t size);

#endif
