/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized tensors: x = (q - zero point) * scale. Operators on one of them, and what products of
 * two (expand_product.h) need of that. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_QUANTIZE_H
#define WPK_MODEL_OPERATOR_EXPAND_QUANTIZE_H

#include "model/operator/expansion.h"

#define WPK_QUANTIZE_SIGN 128 /* u8 less i8, of one tensor */

/* A scale or zero point; value -1: none. */
struct wpk_parameter {
    int value;
    int rank;
    int64_t extent[WPK_RANK_MAX];
};

struct wpk_parameter wpk_parameter_like(int value, const struct wpk_graph_value *like);
/* Of an input of the node; value -1: it is left out. */
struct wpk_parameter wpk_parameter_of(const struct wpk_expansion *e, int input);

/* True if the parameter is one for all elements, one for each index of `axis`, or one for each
 * block of so many of them (0: no blocks). */
bool wpk_parameter_fits(const struct wpk_parameter *p, const struct wpk_graph_value *x, int axis,
                        int64_t block);

/* Append to e->text the index of the parameter for the output's element, "[d1]". */
void wpk_parameter_index(struct wpk_expansion *e, const struct wpk_parameter *p, int axis,
                         int64_t block);
/* Append "Y[d0,d1] = ", or "X[d0,d1]". */
void wpk_quantize_begin(struct wpk_expansion *e, int rank);
void wpk_quantize_x(struct wpk_expansion *e, int rank);

/* u8 or i8. */
bool wpk_quantize_is_narrow(enum wpk_dtype dtype);

/* Products are of u8 by i8. A tensor of i8 that is no constant is computed as u8, 128 above it, and
 * products and DequantizeLinear read that.
 *
 * Append the node that makes i8 of such a tensor.   shape  output: -1 for a new value */
int wpk_quantize_signed(struct wpk_expansion *e, int x, int output);
/* The tensor that wpk_quantize_signed() was given for a value; -1: it was made otherwise. */
int wpk_quantize_find_unsigned(const struct wpk_graph *graph, int value);
/* The same; else append the node that makes the one type of the other, `by` above it. */
int wpk_quantize_shift(struct wpk_expansion *e, int x, int by);
/* A constant zero point of u8: `by` above a constant number, or alone where there is none (-1).
 *   returns -1: it is no constant number */
int wpk_quantize_shift_zero(struct wpk_expansion *e, int zero, int by);

/* The parts of a DynamicQuantizeLinear: values. */
struct wpk_dynamic {
    int quantized;
    int scale;
    int zero;
};

/* Append the nodes that quantize a tensor to u8 with a scale of its own. The range includes 0.
 *   shape   outputs: -1 for new values */
void wpk_quantize_dynamically(struct wpk_expansion *e, int x, const struct wpk_graph_value *like,
                              const struct wpk_dynamic *outputs, struct wpk_dynamic *out);

/*   errors  WPK_EUNSUPPORTED, WPK_EINVAL with a reason; WPK_ENOSPC, WPK_ENOMEM */

/* QuantizeLinear and DequantizeLinear: a scale for all, for each index of an axis, or for each
 * block of it. DynamicQuantizeLinear finds the scale of its input. */
wpk_err wpk_expand_quantize(struct wpk_expansion *e);
wpk_err wpk_expand_dequantize(struct wpk_expansion *e);
wpk_err wpk_expand_dynamic_quantize(struct wpk_expansion *e);

/* MatMulNBits of com.microsoft: weights of 4 bits, with a scale for each block of a row. */
wpk_err wpk_expand_matmul_nbits(struct wpk_expansion *e);

#endif
