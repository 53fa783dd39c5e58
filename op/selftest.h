/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of a choice: what an operator gives at some points, computed by the interpreter. */
#ifndef WPK_OP_SELFTEST_H
#define WPK_OP_SELFTEST_H

#include "op/program.h"
#include "schema/choice.h"

/* Draw the inputs of the seed (schema/draw.h) and compute the first output at a few of its points,
 * the two corners among them. Tensors have the names that recipes and manifests use: the canonical
 * ones. The tolerance lets every algorithm pass, and no wrong loop: a share of the largest sum of
 * |terms|, 0 for integers. Where the interpreter would take too long the test stays empty.
 *
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED */
WPK_MUST_CHECK wpk_err wpk_selftest_make(const struct wpk_program *program, uint64_t seed,
                                         struct wpk_choice_test *out, struct wpk_diag *diag);

#endif
