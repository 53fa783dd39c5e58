/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of onednn_match.c, and how they read a program.
 *
 *      onednn_matmul.c     matrix products
 *      onednn_window.c     convolution and pooling
 *      onednn_norm.c       softmax and layernorm
 */
#ifndef WPK_WORKER_ONEDNN_PATTERN_H
#define WPK_WORKER_ONEDNN_PATTERN_H

#include "worker/onednn_match.h"

/* ---- nodes and loads */

/* `node` without conversions between floating types: they change precision, not the function. */
int wpk_onednn_bare(const struct wpk_program *program, int node);
const struct wpk_node *wpk_onednn_bare_node(const struct wpk_program *program, int node);
/* Is it a number? */
bool wpk_onednn_literal(const struct wpk_program *program, int node, double *out);
/* Is it the load of a tensor that a stage writes? */
bool wpk_onednn_is_written(const struct wpk_program *program, const struct wpk_node *node);
/* Index d of the load is axis d, for all output axes of the stage but trailing ones of extent 1. */
bool wpk_onednn_loads_same_point(const struct wpk_program *program, const struct wpk_stage *stage,
                                 const struct wpk_node *load);
/* The stage that writes what the node loads at the same point; NULL when it is anything else. */
const struct wpk_stage *wpk_onednn_follow(const struct wpk_program *program,
                                          const struct wpk_stage *stage,
                                          const struct wpk_node *node);
/* For each axis the dimension that it alone indexes: every dimension must be such a one, whole, or
 * have extent 1 and index 0.   shape  dim_of [WPK_AXES_MAX], -1 where the axis is not there */
bool wpk_onednn_plain_dims(const struct wpk_program *program, const struct wpk_stage *stage,
                           const struct wpk_node *load, int *dim_of);
/* Does the stage sum the product of two loads of what is given? */
bool wpk_onednn_factors(const struct wpk_program *program, const struct wpk_stage *stage,
                        const struct wpk_node **a, const struct wpk_node **b);
/* The program's output tensor. */
int wpk_onednn_output(const struct wpk_program *program);

/* ---- operands */

/* Start an operand: no dimensions yet. */
void wpk_onednn_operand_begin(struct wpk_recipe_operand *operand, int tensor);
/* Add a dimension: dimension `dim` of the tensor, or one of extent 1 when `dim` is -1. */
void wpk_onednn_operand_add(const struct wpk_program *program, struct wpk_recipe_operand *operand,
                            int dim);
/* The tensor as it is; a scalar has one dimension. */
void wpk_onednn_operand_whole(const struct wpk_program *program, int tensor,
                              struct wpk_recipe_operand *operand);

/* ---- what is read off one stage with a reduction */

/* Is the stage's expression a product of two loads, and if so, a matrix product, a convolution?
 * Is it a load, and if so, a pooling? Fills kind, src, weights and dst; dst is the program's
 * output, whose dimensions are the stage's output axes; `bias` is a load node or -1, in terms of
 * the same axes. */
bool wpk_onednn_match_matmul(const struct wpk_program *program, const struct wpk_stage *stage,
                             int bias, struct wpk_recipe *op);
bool wpk_onednn_match_convolution(const struct wpk_program *program, const struct wpk_stage *stage,
                                  int bias, struct wpk_recipe *op);
bool wpk_onednn_match_pooling(const struct wpk_program *program, const struct wpk_stage *stage,
                              struct wpk_recipe *op);

/* ---- what takes several of them; `last` writes the tensor `output` */

bool wpk_onednn_match_softmax(const struct wpk_program *program, const struct wpk_stage *last,
                              int output, struct wpk_recipe *op);
bool wpk_onednn_match_layernorm(const struct wpk_program *program, const struct wpk_stage *last,
                                int output, struct wpk_recipe *op);

#endif
