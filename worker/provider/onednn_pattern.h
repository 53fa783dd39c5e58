/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of onednn_match.c besides matrix products, and the functions by which they read a
 * program.
 *
 *      onednn_window.c     convolution and pooling
 *      onednn_norm.c       softmax and layernorm
 */
#ifndef WPK_WORKER_PROVIDER_ONEDNN_PATTERN_H
#define WPK_WORKER_PROVIDER_ONEDNN_PATTERN_H

#include "ir/program.h"
#include "schema/recipe.h"

/* Finding the oneDNN primitive that computes a program. It is found by the program's structure, not
 * by an operator's name, and without the library: only the meaning of its primitives is used.
 *
 * A match may be generous where a program is computed slightly differently from the primitive (a
 * variance as E[x^2] - E[x]^2): the runner verifies a vendor's result as it verifies ours. */

#define WPK_ONEDNN_SPATIAL_MAX 3

/* Fill `out` with the recipe. Tensors have the program's names and are row-major; the recipe lets
 * the primitive choose no layout.
 *   errors  WPK_EUNSUPPORTED no primitive that is known here computes the program */
WPK_MUST_CHECK wpk_err wpk_onednn_match(const struct wpk_program *program, struct wpk_recipe *out);

/* ---- nodes and loads */

/* `node` without casts that change precision but not the function. */
int wpk_onednn_bare(const struct wpk_program *program, int node);
const struct wpk_node *wpk_onednn_bare_node(const struct wpk_program *program, int node);
/* True if the node is a literal; sets *out to its value. */
bool wpk_onednn_literal(const struct wpk_program *program, int node, double *out);
/* True if the node loads a tensor that a stage writes. */
bool wpk_onednn_is_written(const struct wpk_program *program, const struct wpk_node *node);
/* True if index d of the load is axis d, for all output axes of the stage but trailing ones of
 * extent 1. */
bool wpk_onednn_loads_same_point(const struct wpk_program *program, const struct wpk_stage *stage,
                                 const struct wpk_node *load);
/* The stage that writes the tensor which the node loads at the same point; NULL for other nodes. */
const struct wpk_stage *wpk_onednn_follow(const struct wpk_program *program,
                                          const struct wpk_stage *stage,
                                          const struct wpk_node *node);
/* Fill dim_of with the dimension that each axis indexes. False unless each dimension is indexed by
 * one axis alone, over its whole extent, or has extent 1 and index 0.
 *   shape  dim_of [WPK_AXES_MAX], -1 for an axis that indexes no dimension */
bool wpk_onednn_plain_dims(const struct wpk_program *program, const struct wpk_stage *stage,
                           const struct wpk_node *load, int *dim_of);
/* True if the stage sums the product of two loads of inputs or constants, *a and *b. */
bool wpk_onednn_factors(const struct wpk_program *program, const struct wpk_stage *stage,
                        const struct wpk_node **a, const struct wpk_node **b);

/* ---- operands */

/* Start an operand without dimensions. */
void wpk_onednn_operand_begin(struct wpk_recipe_operand *operand, int tensor);
/* Add dimension `dim` of the tensor to the operand, or one of extent 1 when `dim` is -1. */
void wpk_onednn_operand_add(const struct wpk_program *program, struct wpk_recipe_operand *operand,
                            int dim);
/* Make an operand with all dimensions of the tensor; a scalar gets one dimension. */
void wpk_onednn_operand_whole(const struct wpk_program *program, int tensor,
                              struct wpk_recipe_operand *operand);

/* ---- programs with one reduction */

/* Load nodes beside the sums; -1: none.  dst = posts(scale * sums + bias), rounded, + zero */
struct wpk_onednn_terms {
    int bias;
    int scale; /* of sums of integers */
    int zero;
};

/* True if the stage is a matrix product or a convolution (its expression is a product of two
 * loads), or a pooling (its expression is a load). Fills kind, src, weights and dst. dst is the
 * program's output, whose dimensions are the stage's output axes; the terms are loads over the same
 * axes. */
bool wpk_onednn_match_convolution(const struct wpk_program *program, const struct wpk_stage *stage,
                                  const struct wpk_onednn_terms *terms, struct wpk_recipe *op);
/* Make the operand of one value for each index of `axis`, or for all, that the load node reads;
 * `node` -1: none. False: it reads others. */
bool wpk_onednn_vector(const struct wpk_program *program, const struct wpk_stage *stage, int node,
                       int axis, struct wpk_recipe_operand *operand);
bool wpk_onednn_match_pooling(const struct wpk_program *program, const struct wpk_stage *stage,
                              struct wpk_recipe *op);

/* ---- programs with several reductions; `last` writes the tensor `output` */

bool wpk_onednn_match_softmax(const struct wpk_program *program, const struct wpk_stage *last,
                              int output, struct wpk_recipe *op);
bool wpk_onednn_match_layernorm(const struct wpk_program *program, const struct wpk_stage *last,
                                int output, struct wpk_recipe *op);

#endif
