/* SPDX-License-Identifier: Apache-2.0 */
/* Finding where values may be infinite or NaN, and which operations are strict because of it.
 *
 * Any input may hold infinities and NaN. Fast arithmetic assumes that no value does: compilers fold
 * a comparison with an infinity, or swap the operands of a maximum, on that ground. But the
 * machine's additions and multiplications are right all the same, so that only these are strict:
 *
 *   - questions: comparisons, max, min, isnan, isinf and casts to bool of floats, functions, and
 *     maxima and minima of rows; they cost what the fast ones do
 *   - pointwise arithmetic whose value a question is asked of, through intermediates, too: a
 *     compiler concludes from a fast operation that its value is a number. Such a product and sum
 *     are no fused multiply-add
 *   - all arithmetic of a program without sums and products over axes: it waits for memory
 *   - operations on what is infinite by intent: infinite literals, and masks of attention, which
 *     are -inf and which an exp turns into 0
 *   - masks of large numbers, (1 - m) * -10000: a compiler that multiplies both terms adds two
 *     large numbers to what the mask is added to, and the rounding of these stays in the sum
 *
 * Sums of products, and what is computed from them that no question is asked of, are fast. */
#ifndef WPK_IR_INFINITE_H
#define WPK_IR_INFINITE_H

#include "ir/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The special values that a value in a kernel may have besides finite numbers. */
enum wpk_may_be {
    WPK_MAY_BE_MINUS = 1, /* -inf */
    WPK_MAY_BE_PLUS = 2,  /* +inf */
    WPK_MAY_BE_NAN = 4,
    WPK_IS_MAXIMUM = 8, /* the maximum of a row: -inf only if the whole row is */
    WPK_MAY_BE_INFINITE = WPK_MAY_BE_MINUS | WPK_MAY_BE_PLUS,
    WPK_MAY_BE_SPECIAL = WPK_MAY_BE_INFINITE | WPK_MAY_BE_NAN,
};

/* The values of a program that may be infinite by intent, and its strict operations; = {0}: none.
 */
struct wpk_infinite {
    bool tensor[WPK_TENSORS_MAX]; /* by tensor id: its elements may be infinite */
    /* By tensor id, of inputs and constants: the special values for which a question is asked of
     * them and that all kernels make the same of: no sum, be it of two values, meets them, whose
     * terms may cancel or be rounded together with a product; and no NaN a choice of one term of
     * many, or a cast to an integer. Bits of enum wpk_may_be. */
    unsigned char special[WPK_TENSORS_MAX];
    unsigned char may_be[WPK_NODES_MAX]; /* by node id: bits of enum wpk_may_be */
    bool strict[WPK_NODES_MAX];          /* by node id */
    /* By stage: its terms may be infinite, or it is a maximum or minimum of floats, whose identity
     * is infinite. */
    bool reduction[WPK_STAGES_MAX];
    bool any; /* some node or reduction is strict */
    /* Whole rows may be -inf: none of their NaN reaches a comparison or a conversion to an integer,
     * whose results would differ between kernels. */
    bool rows;
};

/* Find the values that may be infinite: inputs and constants that reach an exp or the maximum of a
 * row only through +, the left side of -, max and select; infinite literals; and all that is
 * computed from these. The
 * maximum of a row is taken to be -inf only where the whole row that it is subtracted from is. */
void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out);

#ifdef __cplusplus
}
#endif
#endif
