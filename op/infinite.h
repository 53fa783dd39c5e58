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

/* Does the node compute with a value that may be infinite, one of a literal included? Such
 * arithmetic is built strict: the default assumes that there are no infinities. */
bool wpk_infinite_computes(const struct wpk_program *program, const struct wpk_infinite *infinite,
                           int node);
/* Is there an infinite literal? Halide's own folding knows nothing of them. */
bool wpk_infinite_literal(const struct wpk_program *program);

#ifdef __cplusplus
}
#endif
#endif
