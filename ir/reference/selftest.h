/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of a choice: output values at some points, computed by the interpreter. */
#ifndef WPK_IR_REFERENCE_SELFTEST_H
#define WPK_IR_REFERENCE_SELFTEST_H

#include "ir/program.h"
#include "schema/choice.h"

/* Draw the inputs of the seed (schema/draw.h) and compute each output at a few of its points, its
 * two corners among them. Tensors have their canonical names, as in recipes and manifests. The
 * tolerance is a fraction of the largest sum of |terms|, and 0 for integers: every algorithm is
 * within it, and a wrong loop is not. If the interpreter would take too long, or an output has no
 * finite value, that output has no points.
 *
 *   shape   out->output [outputs->count], in the order of `outputs`
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED */
WPK_MUST_CHECK wpk_err wpk_selftest_make(const struct wpk_program *program, uint64_t seed,
                                         const struct wpk_choice_list *outputs,
                                         struct wpk_choice_test *out, struct wpk_diag *diag);

#endif
