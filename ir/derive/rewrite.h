/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of which derivations are made. */
#ifndef WPK_IR_DERIVE_REWRITE_H
#define WPK_IR_DERIVE_REWRITE_H

#include "ir/program.h"

/* Make the node that replaces a load. `load` is the old node; `index` has its rewritten indices.
 * Returns a node id, or -1 on failure. */
typedef int (*wpk_load_rewrite)(struct wpk_program *program, const struct wpk_node *load,
                                const int *index, void *user);

/* Rebuild an expression with axes replaced by nodes, and loads of `tensor` (-1: of any) by the
 * nodes that `rewrite` returns (NULL: none).
 *
 *   shape   axis_map [WPK_AXES_MAX] node ids, or NULL: axes stay
 *   errors  -1 when a limit is reached
 */
int wpk_rewrite_expr(struct wpk_program *program, int node, const int *axis_map, int tensor,
                     wpk_load_rewrite rewrite, void *user);

/* Keep the load with its new indices, as a rewrite does with loads that it does not replace. */
int wpk_rewrite_keep(struct wpk_program *program, const struct wpk_node *load, const int *index);

/* Rewrite the loads of a tensor in every stage but `except` (-1: none).   errors  WPK_ENOSPC */
wpk_err wpk_rewrite_all(struct wpk_program *program, int except, int tensor,
                        wpk_load_rewrite rewrite, void *user);

/* Put the stages in topological order, changing their order no more than needed. Then drop stages
 * and tensors that no output needs, and unused nodes. Ids change.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_program_tidy(struct wpk_program *program);

/* Write a name that no tensor has: stem, or stem with a number.   shape  out [WPK_NAME_MAX] */
void wpk_program_free_name(const struct wpk_program *program, const char *stem, char *out);
/* Add an intermediate STEM_SUFFIX, or with a number if there is one; returns its id, or -1.
 *   shape   extent [rank] */
int wpk_rewrite_add_tensor(struct wpk_program *program, const char *stem, const char *suffix,
                           enum wpk_dtype dtype, int rank, const int64_t *extent);
/* The same with a stage that writes it; returns the stage's number, or -1.
 *   shape   axes [rank] names, or NULL */
int wpk_rewrite_add_stage(struct wpk_program *program, const char *stem, const char *suffix,
                          enum wpk_dtype dtype, int rank, const int64_t *extent,
                          const char *const *axes);

/* Index arithmetic on nodes of dtype i64; -1 operands give -1. */
int wpk_index_add(struct wpk_program *program, int a, int b);
int wpk_index_add_constant(struct wpk_program *program, int a, int64_t constant);
int wpk_index_scale(struct wpk_program *program, int a, int64_t factor);
int wpk_index_div(struct wpk_program *program, int a, int64_t divisor);
int wpk_index_mod(struct wpk_program *program, int a, int64_t divisor);

/* The place of each dimension of what is loaded among the axes of the stage, if the load reads all
 * elements, each once, over the stage's axes in some order.   shape  place [stage->rank] */
bool wpk_rewrite_order(const struct wpk_program *program, const struct wpk_stage *stage,
                       const struct wpk_node *load, int *place);

/* True if the tensor reaches outside of [0, extent). */
bool wpk_tensor_has_border(const struct wpk_tensor *tensor);

#endif
