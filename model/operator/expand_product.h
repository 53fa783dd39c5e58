/* SPDX-License-Identifier: Apache-2.0 */
/* Products of quantized tensors, computed in i32, whose sums are exact, and scaled once at the
 * end. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_PRODUCT_H
#define WPK_MODEL_OPERATOR_EXPAND_PRODUCT_H

#include "model/operator/expansion.h"

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
