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
};

/* The inputs and constants that reach an exp through +, the left side of -, max and select only,
 * and every tensor that is computed from them without an exp in between. */
void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out);

/* Is an infinity written down? The generator folds such literals as if there were none, unless all
 * arithmetic is strict. Infinities that come with the data need nothing: loads, +, -, max and exp
 * pass them on as the machine does, which every kernel shows on masked inputs; strict arithmetic
 * in the subtraction alone made a softmax of 1536 x 128 slower by 10 to 25 %. */
bool wpk_infinite_literal(const struct wpk_program *program);

#ifdef __cplusplus
}
#endif
#endif
