/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers shared by the files that expand operators: nodes of equations, and how an expansion
 * fails. */
#ifndef WPK_MODEL_OPERATOR_EXPANSION_H
#define WPK_MODEL_OPERATOR_EXPANSION_H

#include "model/operator/compose.h"

/* A node that others take the place of. */
struct wpk_expansion {
    struct wpk_compose to; /* keeps the first failure */
    struct wpk_graph *graph;
    const struct wpk_graph_node *node;
    struct wpk_diag *diag;
    struct wpk_buf text; /* of the next equation, in notation */
    int axis;            /* of the next equation's second tensor, kept as its attribute */
};

/* Say why the node is refused.   errors  returns WPK_EUNSUPPORTED */
WPK_MUST_CHECK wpk_err wpk_expansion_refuse(const struct wpk_expansion *e, const char *why);

/* A copy of input number `index`, as more values move what they were; rank -1: left out. */
struct wpk_graph_value wpk_expansion_input(const struct wpk_expansion *e, int index);

/* The number that input `index` is, or `otherwise` if it is left out.
 *   errors  WPK_EUNSUPPORTED  it is no constant integer */
WPK_MUST_CHECK wpk_err wpk_expansion_number(const struct wpk_expansion *e, int index,
                                            int64_t otherwise, int64_t *out);

double wpk_expansion_real(const struct wpk_expansion *e, const char *attribute, double otherwise);

/* Append a node whose equation is e->text, which is emptied; its tensors are X, X1, ... and Y.
 *   shape   inputs [count], extent [rank]; output: -1 for a new value
 *   returns the value that it computes */
int wpk_expansion_equation(struct wpk_expansion *e, const int *inputs, int count,
                           enum wpk_dtype dtype, int rank, const int64_t *extent, int output);

/* Append a node of an operator of ONNX, or of another domain.
 *   shape   output: -1 for a new value */
int wpk_expansion_node(struct wpk_expansion *e, const char *domain, const char *op,
                       const int *inputs, int count, const struct wpk_graph_attribute *attributes,
                       int attribute_count, int output);
int wpk_expansion_binary(struct wpk_expansion *e, const char *op, int a, int b, int output);
int wpk_expansion_cast(struct wpk_expansion *e, int x, enum wpk_dtype dtype, int output);

/* A tensor of f32 or f64 of these numbers.   shape  numbers [elements of extent [rank]] */
int wpk_expansion_constant(struct wpk_expansion *e, enum wpk_dtype dtype, int rank,
                           const int64_t *extent, const double *numbers);

/* Rows of x [rows, ...]: out[i.., ...] = x[indices[i..], ...]. */
int wpk_expansion_gather(struct wpk_expansion *e, int x, int indices, int output);

/* The value that output number `index` is; -1: nobody asks for it. */
int wpk_expansion_output(const struct wpk_expansion *e, int index);

/* "d0,d1,...", of `count` axes, into e->text. */
void wpk_expansion_axes(struct wpk_expansion *e, int count);

/* The product of `count` extents. */
int64_t wpk_expansion_product(const int64_t *extent, int count);

#endif
