/* SPDX-License-Identifier: Apache-2.0 */
/* Finding where values may be infinite: masks of attention are -inf, which an exp turns into 0. */
#ifndef WPK_OP_INFINITE_H
#define WPK_OP_INFINITE_H

#include "op/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The special values that a value in a kernel may have besides finite numbers. */
enum wpk_may_be {
    WPK_MAY_BE_MINUS = 1, /* -inf */
    WPK_MAY_BE_PLUS = 2,  /* +inf */
    WPK_MAY_BE_NAN = 4,
    WPK_MAY_BE_DROPPED = 8, /* NaN in the reference, where an exp in the kernel gives 0 for NaN */
    WPK_IS_MAXIMUM = 16,    /* the maximum of a row: -inf only if the whole row is */
    WPK_MAY_BE_INFINITE = WPK_MAY_BE_MINUS | WPK_MAY_BE_PLUS,
    WPK_MAY_BE_SPECIAL = WPK_MAY_BE_INFINITE | WPK_MAY_BE_NAN,
};

/* The values of a program that may be infinite; = {0}: none.
 *
 * Fast arithmetic assumes that no value is infinite or NaN, and its result is undefined for others.
 * Nodes that are `strict` are built without that assumption, which costs a softmax one instruction
 * for each exp. A sum of exps is not strict: exp gives 0 for NaN, so that all terms are finite. The
 * division of a softmax is strict, because it may divide 0 by 0. */
struct wpk_infinite {
    bool tensor[WPK_TENSORS_MAX]; /* by tensor id: its elements may be infinite */
    unsigned char may_be[WPK_NODES_MAX]; /* by node id: bits of enum wpk_may_be */
    /* By node id: an operand or the value may be infinite or NaN. A sum of products is not strict:
     * fused multiply-adds pass NaN on. */
    bool strict[WPK_NODES_MAX];
    /* By stage: its terms may be infinite, or it is a maximum or minimum of floats, whose identity
     * is infinite. */
    bool reduction[WPK_STAGES_MAX];
    bool any;                       /* some node or reduction is strict */
    /* Whole rows may be -inf: none of their NaN reaches a comparison or a conversion to an integer,
     * whose results would differ between kernels. */
    bool rows;
};

/* Find the values that may be infinite: inputs and constants that reach an exp or the maximum of a
 * row only through +, the left side of -, max and select; infinite literals; and all that is
 * computed from these. The
 * maximum of a row is taken to be -inf only where the whole row that it is subtracted from is. */
void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out);

/* Make the program as kernels compute it: each exp gives 0 for NaN. A softmax that divides 0 by 0
 * still gives NaN.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_infinite_drop(const struct wpk_program *program, const struct wpk_infinite *infinite,
                          struct wpk_program *out);

/* True if the node is an exp whose operand may be NaN. */
bool wpk_infinite_drops(const struct wpk_program *program, const struct wpk_infinite *infinite,
                        int node);

#ifdef __cplusplus
}
#endif
#endif
