/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs for property tests. A seed always gives the same program.
 *
 * A program has one to four stages, or up to 40 if asked for, pointwise or reducing, over up to
 * four given tensors and literals. Indices stride, shift, divide, take remainders, and leave their
 * tensors. Every tensor is used, no value is NaN, and the interpreter takes about a millisecond at
 * most. */
#ifndef WPK_TESTS_RANDOM_PROGRAM_H
#define WPK_TESTS_RANDOM_PROGRAM_H

#include "common/rng.h"
#include "ir/program.h"

struct wpk_random_options {
    bool smooth;       /* floating types and continuous functions only: rounding cannot flip a
                           result, so equivalent programs can be compared within a tolerance */
    bool without_pads; /* no tensor has padding */
    int stages_max;    /* at most 40; 0: 4 */
    bool outputs;      /* some stages before the last have outputs, too */
    bool data;         /* some indices are elements of a literal */
    bool products;     /* most reductions are sums of products of two loads, windows among them */
};

/* Draw a program. `options` may be NULL: no restriction.
 *
 *   owns    caller calls wpk_program_fini
 *   errors  none: the program is valid, which is asserted
 */
void wpk_random_program(struct wpk_rng *rng, const struct wpk_random_options *options,
                        struct wpk_program *out);

#endif
