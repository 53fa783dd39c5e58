/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a program in another way, for tests of what must not depend on the way. A seed always
 * gives the same program.
 *
 * Tensors, stages and reduction axes get another order and other names. Operands of commutative
 * operations change places, chains associate differently, and no expression stays shared. */
#ifndef WPK_TESTS_REWRITTEN_PROGRAM_H
#define WPK_TESTS_REWRITTEN_PROGRAM_H

#include "ir/program.h"

/* Write `from` in another way into `to`.
 *   shape   tensor_map: [from->tensor_count], the index in `to` of each tensor
 *   owns    caller calls wpk_program_fini on `to`, which is empty before
 *   errors  none: `to` is as valid as `from`, which is asserted
 */
void wpk_rewritten_program(const struct wpk_program *from, uint64_t seed, struct wpk_program *to,
                           int *tensor_map);

#endif
