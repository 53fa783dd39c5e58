/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that nobody thought of, for property tests: the same seed gives the same program.
 *
 * One to four stages, pointwise or reducing, over up to four given tensors, literals too; the
 * indices stride, shift, divide and take remainders, and leave their tensors. Every tensor is used,
 * no value is NaN, and a whole program takes the interpreter about a millisecond at most. */
#ifndef WPK_TESTS_RANDOM_PROGRAM_H
#define WPK_TESTS_RANDOM_PROGRAM_H

#include "common/rng.h"
#include "op/program.h"

struct wpk_random_options {
    bool smooth;       /* floating types and continuous functions only: rounding cannot flip a
                           result, so equivalent programs can be compared within a tolerance */
    bool without_pads; /* no tensor has a border of its own */
    bool products;     /* most reductions are sums of products of two loads, windows among them */
};

/* `options` may be NULL: everything.
 *
 *   owns    caller calls wpk_program_fini
 *   errors  none: the program is valid, which is asserted
 */
void wpk_random_program(struct wpk_rng *rng, const struct wpk_random_options *options,
                        struct wpk_program *out);

#endif
