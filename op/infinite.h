/* SPDX-License-Identifier: Apache-2.0 */
/* Where minus infinity may stand: masks of attention put it into what an exp makes 0 of. */
#ifndef WPK_OP_INFINITE_H
#define WPK_OP_INFINITE_H

#include "op/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a value may be in a kernel, besides a finite number. */
enum wpk_may_be {
    WPK_MAY_BE_MINUS = 1, /* -inf */
    WPK_MAY_BE_PLUS = 2,  /* +inf */
    WPK_MAY_BE_NAN = 4,
    WPK_MAY_BE_DROPPED = 8, /* NaN in the reference: an exp made 0 of it */
    WPK_IS_MAXIMUM = 16,    /* of a row: -inf only where all of the row is */
    WPK_MAY_BE_INFINITE = WPK_MAY_BE_MINUS | WPK_MAY_BE_PLUS,
    WPK_MAY_BE_SPECIAL = WPK_MAY_BE_INFINITE | WPK_MAY_BE_NAN,
};

/* = {0}: nowhere.
 *
 * Fast arithmetic assumes that there are no infinities and no NaN: where there are, its value is
 * undefined, whatever the machine would have made of them. What is `strict` is built without that
 * assumption: it costs a softmax one instruction for each exp. A sum of exps is not: exp makes 0 of
 * NaN, so that its terms are finite, and a softmax divides 0 by 0 with a strict division. */
struct wpk_infinite {
    bool tensor[WPK_TENSORS_MAX]; /* by tensor id: its elements may be infinite */
    unsigned char may_be[WPK_NODES_MAX]; /* by node id: bits of enum wpk_may_be */
    /* By node id: an operand or the value may be infinite or NaN; but a sum of products hands NaN
     * on with fused multiply-adds. */
    bool strict[WPK_NODES_MAX];
    bool reduction[WPK_STAGES_MAX]; /* by stage: its terms may be infinite */
    bool any;                       /* some node or reduction is strict */
    /* Whole rows may be -inf: no NaN of theirs meets a comparison or a conversion to integers, of
     * which the results differ from kernel to kernel. */
    bool rows;
};

/* The inputs and constants that reach an exp through +, the left side of -, max and select only,
 * infinities that are written down, and what is computed from them. A maximum of a row is taken to
 * be -inf only where all that it is subtracted from is. */
void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out);

/* The program as kernels compute it: an exp gives 0 for NaN. Where a softmax divides 0 by 0 it is
 * NaN again.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_infinite_drop(const struct wpk_program *program, const struct wpk_infinite *infinite,
                          struct wpk_program *out);

/* Is the node an exp of what may be NaN? */
bool wpk_infinite_drops(const struct wpk_program *program, const struct wpk_infinite *infinite,
                        int node);

/* What a reduction by max or min of a floating type starts from: an infinity if its terms may be
 * infinite, else the largest number, because fast arithmetic knows no infinity. */
double wpk_infinite_identity(enum wpk_reduction reduction, enum wpk_dtype dtype, bool infinite);

/* An exp of this, and of less, is 0. An exp that is strict takes the larger of it and its argument,
 * and it instead of NaN. */
double wpk_infinite_exp_least(enum wpk_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
