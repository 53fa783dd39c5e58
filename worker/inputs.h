/* SPDX-License-Identifier: Apache-2.0 */
/* The data on which candidates are verified and timed: the same for the same op, set and seed.
 *
 *   set 0  small integers: sums are exact in any order, so exact algorithms must match bit for bit
 *   set 1  reals in [-1, 1), rounded to the tensor's type
 *
 * Every value is finite. Where the op is undefined on such data (a logarithm, a division by zero)
 * the sets are drawn again from their positive values. */
#ifndef WPK_WORKER_INPUTS_H
#define WPK_WORKER_INPUTS_H

#include "op/program.h"

#include <stdint.h>

enum wpk_input_kind { WPK_INPUT_INTEGERS, WPK_INPUT_REALS };

struct wpk_input_options {
    enum wpk_input_kind kind;
    bool positive;
    uint64_t seed;
};

/* = {0} is empty. */
struct wpk_inputs {
    void *dense[WPK_TENSORS_MAX];  /* owned; by tensor id, [extent...] row-major in its type; NULL
                                      for what is not an input or constant */
    double *wide[WPK_TENSORS_MAX]; /* owned; the same as doubles, after wpk_inputs_widen */
};

/*   owns    caller calls wpk_inputs_fini
 *   errors  WPK_ENOMEM */
wpk_err wpk_inputs_make(const struct wpk_program *program, const struct wpk_input_options *options,
                        struct wpk_inputs *out);
/* Fill `wide`, which only the interpreter needs.   errors  WPK_ENOMEM */
wpk_err wpk_inputs_widen(const struct wpk_program *program, struct wpk_inputs *inputs);
void wpk_inputs_fini(struct wpk_inputs *inputs);

#endif
