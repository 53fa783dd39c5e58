/* SPDX-License-Identifier: Apache-2.0 */
/* Direct evaluation: the program as it is written, in its declared types. The error of direct
 * evaluation against the reference is the unit of accuracy: a candidate's error is a multiple of it
 * (schema/accuracy.h).
 *
 *   - every operation rounds to the type of its node, to nearest even; nothing is contracted
 *   - a floating sum or product takes its terms one by one, in the order of the stage's reduction
 *     axes, the last of them fastest, and rounds to the accumulator's type after each
 *   - stored tensors, literals and casts round to their types
 *   - / and sqrt are correctly rounded; x % y is x - y * floor(x / y), operation by operation
 *   - exp, log, rsqrt, tanh, erf, sigmoid, sin, cos and pow are the double's value, rounded, then
 *     moved by -2 to 2 units in the last place, as a machine's may be. rsqrt is among them because
 *     hardware computes it from an estimate. The move is a hash of set, stage, node and point
 *   - integers are computed as the reference computes them
 *
 * The result depends on nothing else: not on the machine, nor on how much is evaluated. No code of
 * a candidate or of a library takes part in it. */
#ifndef WPK_IR_REFERENCE_DIRECT_H
#define WPK_IR_REFERENCE_DIRECT_H

#include "ir/reference/reference.h"

/* Compute the program's output.
 *
 *   shape   args as for the reference, values of their tensors' types; value [output extents...]
 *   unit    set: any number that identifies the input set
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED
 *   speed   that of the reference with magnitudes: a convolution of 116 million multiply-adds (128
 *           channels, 28x28, f32) took 94 ms of one core, the reference 126 ms
 */
wpk_err wpk_direct_run(const struct wpk_program *program, const struct wpk_reference_args *args,
                       uint64_t set, double *value, struct wpk_diag *diag);

/* The same at chosen points only.
 *   shape   points [count][output rank] indices; value [count] */
wpk_err wpk_direct_run_at(const struct wpk_program *program, const struct wpk_reference_args *args,
                          uint64_t set, const int64_t *points, int64_t count, double *value,
                          struct wpk_diag *diag);

#endif
