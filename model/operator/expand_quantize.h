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

/* u8 or i8. */
bool wpk_quantize_is_narrow(enum wpk_dtype dtype);

/* Products are of u8 by i8. A tensor of i8 that is no constant is computed as u8, 128 above it, and
 * products and DequantizeLinear read that.
 *
 * Append the node that makes i8 of such a tensor.   shape  output: -1 for a new value */
int wpk_quantize_signed(struct wpk_expansion *e, int x, int output);
/* The tensor that wpk_quantize_signed() was given for a value; else append the node that makes the
 * one type of the other, `by` above it. */
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

/* Products of quantized tensors, computed in i32, whose sums are exact, and scaled once at the
 * end. */

/* Quantized weights of a product, [k, n]. */
struct wpk_quantized_weights {
    int value;
    struct wpk_graph_value like; /* its type and shape */
    int zero;                    /* value, in i32; -1: it is 0 */
    int zero_rank;               /* 1: one for each column */
    int scale;                   /* value, of 1 or n elements */
};

/* Describe weights but for their scale.
 *   shape   zero: value of 1 or n elements; -1: none
 *   errors  WPK_EUNSUPPORTED other types than u8 and i8; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_quantized_read(struct wpk_expansion *e, int value,
                                          const struct wpk_graph_value *like, int zero,
                                          const struct wpk_graph_value *zero_like,
                                          struct wpk_quantized_weights *out);

/* Append the product of x, quantized with a scale of its own, and the weights.
 *   shape   x: value f32 [rows, k]; returns the value, f32 [rows, n] */
int wpk_quantized_product(struct wpk_expansion *e, int x, int64_t rows,
                          const struct wpk_quantized_weights *weights);

/*   errors  WPK_EUNSUPPORTED, WPK_EINVAL with a reason; WPK_ENOSPC, WPK_ENOMEM */

/* MatMulInteger and ConvInteger: their sums, in i32. */
wpk_err wpk_expand_matmul_integer(struct wpk_expansion *e);
wpk_err wpk_expand_conv_integer(struct wpk_expansion *e);

/* QLinearMatMul and QLinearConv: quantized outputs of quantized inputs. */
wpk_err wpk_expand_qlinear_matmul(struct wpk_expansion *e);
wpk_err wpk_expand_qlinear_conv(struct wpk_expansion *e);

/* Append to the graph nodes that compute a Conv, MatMul or Gemm of two dequantized tensors in
 * integers; their sums are scaled once.
 *   errors  WPK_ENOENT the node is none; WPK_EUNSUPPORTED, WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_expand_dequantized(struct wpk_graph *graph,
                                              const struct wpk_graph_node *node);

/* Of com.microsoft: products in i32 whose outputs are floats. The first one quantizes its input,
 * too. */
wpk_err wpk_expand_dynamic_quantize_matmul(struct wpk_expansion *e);
wpk_err wpk_expand_matmul_integer_to_float(struct wpk_expansion *e);

#endif
