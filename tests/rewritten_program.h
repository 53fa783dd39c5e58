/* SPDX-License-Identifier: Apache-2.0 */
/* The same program written differently, for tests of what must not depend on that: the same seed
 * gives the same one.
 *
 * Tensors, stages and reduction axes come in another order and under other names; operands of what
 * commutes change places, chains associate differently, and nothing stays shared. */
#ifndef WPK_TESTS_REWRITTEN_PROGRAM_H
#define WPK_TESTS_REWRITTEN_PROGRAM_H

#include "op/program.h"

/*   shape   tensor_map: [from->tensor_count], which tensor of `to` each has become
 *   owns    caller calls wpk_program_fini on `to`, which is empty before
 *   errors  none: `to` is as valid as `from`, which is asserted
 */
void wpk_rewritten_program(const struct wpk_program *from, uint64_t seed, struct wpk_program *to,
                           int *tensor_map);

#endif
