/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating programs of integers alone, bit for bit: the interpreter's doubles hold integers below
 * 2^53, and sums and products that wrap leave them. */
#ifndef WPK_OP_INTEGER_H
#define WPK_OP_INTEGER_H

#include "op/program.h"

#define WPK_INTEGER_ITERATIONS_MAX 2e8 /* of all stages: some seconds */

/* True if the program has no floating type, no pow, and few enough iterations. */
bool wpk_integer_fits(const struct wpk_program *program);

/* Compute the program's output. A division by 0 is 0.
 *
 *   shape   given [tensor_count]: of inputs and constants [elements], row-major without padding;
 *           out [elements of the output]
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_integer_run(const struct wpk_program *program,
                                       const int64_t *const *given, int64_t *out);

#endif
