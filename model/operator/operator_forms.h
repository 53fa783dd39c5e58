/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and equations of the kinds of nodes, as operator_table.c lists them.
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
#ifndef WPK_MODEL_OPERATOR_OPERATOR_FORMS_H
#define WPK_MODEL_OPERATOR_OPERATOR_FORMS_H

#include "model/graph.h"
#include "model/operator/inference.h"
#include "model/operator/operator.h"

/* Operators that move blocks or borders: DepthToSpace, SpaceToDepth, Tile, CenterCropPad, and Pad's
 * modes edge, reflect and wrap. */
WPK_MUST_CHECK wpk_err wpk_infer_place(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_place(struct wpk_printer *printer);

/* Of a Pad of another mode than constant. */
WPK_MUST_CHECK wpk_err wpk_print_border(struct wpk_printer *printer);

/* Attention: softmax(Q K' scale + mask) V, with grouped heads, a cache and windows. Parts: the
 * result, the keys and values with those of the cache before them, and the scores. */
WPK_MUST_CHECK wpk_err wpk_infer_attention(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_attention(struct wpk_printer *printer);

/* Einsum: its equation is one in notation, with other names. */
WPK_MUST_CHECK wpk_err wpk_infer_einsum(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_einsum(struct wpk_printer *printer);

/* Normalizations over some of the channels: GroupNormalization and LRN. */
WPK_MUST_CHECK wpk_err wpk_infer_group(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_group(struct wpk_printer *printer);

/* Operators whose indices are data: Gather, GatherElements, GatherND, ScatterElements, ScatterND,
 * OneHot. Gathers are loads at indices that are data (ir/data_index.h). Scatters have shapes here;
 * host.h computes them. */
WPK_MUST_CHECK wpk_err wpk_infer_indexed(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_indexed(struct wpk_printer *printer);

/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
WPK_MUST_CHECK wpk_err wpk_infer_loss(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_loss(struct wpk_printer *printer);

/* Resize and Upsample in all modes. The nearest element by whole factors is an index, X[d0/2]; all
 * else is a product with a matrix for each axis, sum(k) W[d,k] * X[k], whose row d has the weights
 * of the elements around d's place in the input. */
WPK_MUST_CHECK wpk_err wpk_infer_resize(const struct wpk_inference *in);

/* Give a node whose output's shape is known its matrices: its inputs become X and a constant for
 * each axis, or none for an axis that stays as it is. A node by whole factors stays as it is.
 *   errors  WPK_EUNSUPPORTED with a reason; WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_resize_add_matrices(struct wpk_graph *graph, int node,
                                               struct wpk_diag *diag);

wpk_err wpk_print_resize(struct wpk_printer *printer);

/* RotaryEmbedding: pairs of elements are turned by an angle that depends on the row's position. */
WPK_MUST_CHECK wpk_err wpk_infer_rotary(const struct wpk_inference *in);
WPK_MUST_CHECK wpk_err wpk_print_rotary(struct wpk_printer *printer);

/* Those that only move elements. Reshape, Flatten, Squeeze and Unsqueeze are one: the elements in
 * their order.   errors  WPK_EINVAL the numbers of elements differ */
WPK_MUST_CHECK wpk_err wpk_print_reshape(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_transpose(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_concat(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_pad(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_slice(struct wpk_printer *printer);

/* Append the equation by the operator's text (operator.h).
 *   errors  those of wpk_operator_reduced */
WPK_MUST_CHECK wpk_err wpk_print_text(struct wpk_printer *printer);

/* Those of a Clip, of any number of inputs, and the one that an attribute is.
 *   errors  WPK_EUNSUPPORTED a Clip's limit is no number of its input's type */
wpk_err wpk_print_clip(struct wpk_printer *printer);
wpk_err wpk_print_variadic(struct wpk_printer *printer);
wpk_err wpk_print_equation(struct wpk_printer *printer);

/* Nodes without an equation: a TopK without a constant K, a shape that is not known, and the
 * boundaries of a loop (loop.h), which are memory that nodes share.   errors  WPK_EUNSUPPORTED */
wpk_err wpk_print_top_k(struct wpk_printer *printer);
wpk_err wpk_print_shapeless(struct wpk_printer *printer);
wpk_err wpk_print_boundary(struct wpk_printer *printer);

/* The equations of operators with windows, and of products.   errors  those of wpk_graph_window */
WPK_MUST_CHECK wpk_err wpk_print_conv(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_conv_transpose(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_pool(struct wpk_printer *printer);
wpk_err wpk_print_matmul(struct wpk_printer *printer);
wpk_err wpk_print_gemm(struct wpk_printer *printer);

/* The printer of a node's equation. Inputs are named X, X1, ..., output axis a d<a>, a reduction
 * axis r<a>. */

struct wpk_printer {
    const struct wpk_graph *graph;
    const struct wpk_graph_node *node;
    const struct wpk_operator *op;
    const struct wpk_graph_value *out;
    const struct wpk_graph_value *input[WPK_OPERATOR_INPUTS_MAX]; /* NULL: left out */
    struct wpk_buf *text;
    struct wpk_diag *diag;
};

/* Append the beginning of a factor, "X", or "i32(X" of a narrow integer whose product is summed in
 * i32; and what comes behind the factor's indices. */
void wpk_printer_factor(struct wpk_printer *printer, int input);
void wpk_printer_end_factor(struct wpk_printer *printer, int input);
/* Append "Y[d0,d1,...] = ". */
void wpk_printer_output(struct wpk_printer *printer);
/* Append input number `input` broadcast to the output's axes, or its number if it is a constant of
 * one element and another operand is not. */
void wpk_printer_broadcast(struct wpk_printer *printer, int input);
/* Append the number that a constant's first element is. */
void wpk_printer_constant(struct wpk_printer *printer, const struct wpk_graph_value *value);
/* Append a number of a floating type so that it reads back as the same one. */
void wpk_printer_number(struct wpk_printer *printer, double value);

#endif
