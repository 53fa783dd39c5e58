/* SPDX-License-Identifier: Apache-2.0 */
/* Where minus infinity may stand: masks of attention put it into what an exp makes 0 of. */
#ifndef WPK_OP_INFINITE_H
#define WPK_OP_INFINITE_H

#include "op/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* = {0}: nowhere. */
struct wpk_infinite {
    bool tensor[WPK_TENSORS_MAX]; /* by tensor id: its elements may be -inf */
    /* By node id: a function of what may be NaN, a difference of two infinities. The machine hands
     * NaN on through + - * / and roots; the generator's functions make numbers of it. */
    bool drops[WPK_NODES_MAX];
    /* Whole rows may be -inf: no NaN of theirs meets a comparison or a conversion to integers, of
     * which the results differ from kernel to kernel. */
    bool rows;
};

/* The inputs and constants that reach an exp through +, the left side of -, max and select only,
 * and what is computed from them. */
void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out);

/* The program as kernels compute it: functions that drop NaN give 0 for it. Where a softmax divides
 * 0 by 0 it is NaN again.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_infinite_drop(const struct wpk_program *program, const struct wpk_infinite *infinite,
                          struct wpk_program *out);

/* Is an infinity written down? The generator folds such literals as if there were none, unless all
 * arithmetic is strict.
 *
 * Infinities that come with the data need nothing: loads, +, -, max and exp pass them on as the
 * machine does, which every kernel shows on masked inputs. One strict operation makes Halide 21 add
 * up the 16 lanes of a row one after the other, and compare them with care for NaN: a softmax of
 * 1536 x 128 took 150 instead of 125 us, one of 768 x 64 42 instead of 33, with the subtractions
 * alone strict. */
bool wpk_infinite_literal(const struct wpk_program *program);

#ifdef __cplusplus
}
#endif
#endif
