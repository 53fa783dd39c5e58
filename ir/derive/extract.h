/* SPDX-License-Identifier: Apache-2.0 */
/* Extracting some stages of a program as a program of their own. */
#ifndef WPK_IR_DERIVE_EXTRACT_H
#define WPK_IR_DERIVE_EXTRACT_H

#include "ir/program.h"

/* Copy the stages marked in `keep`, and the tensors they touch, into a fresh program without
 * unused nodes. Tensors written outside of `keep` become constants of the copy; tensors written
 * inside and marked in `output` become its outputs. Names and order stay.
 *
 *   shape   keep [stage_count]; output [tensor_count]
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM; WPK_ENOSPC a limit is reached, e.g. WPK_LOADS_MAX
 */
wpk_err wpk_program_extract(const struct wpk_program *program, const bool *keep, const bool *output,
                            struct wpk_program *out);

/* Append a copy of one stage of `program` to `out`.
 *   shape   tensor_map [program->tensor_count] ids in `out`
 *   errors  WPK_ENOSPC; wpk_program_full_error tells memory from limits */
wpk_err wpk_program_copy_stage(const struct wpk_program *program, const struct wpk_stage *stage,
                               const int *tensor_map, struct wpk_program *out);

/* Split a program into `prepare`, the stages that depend on constants only, which run once when a
 * kernel is loaded, and `main_part`, the others. `prepare` may be empty. A copy of a tensor as it
 * is prepares nothing and stays in `main_part`, whose nest says where it is made.
 *
 *   errors  as above
 */
wpk_err wpk_program_split_prepare(const struct wpk_program *program, struct wpk_program *main_part,
                                  struct wpk_program *prepare);

/* Mark the stages of `prepare`.   shape  out [stage_count] */
void wpk_program_mark_prepare(const struct wpk_program *program, bool *out);

/* The contractions of a program, for derivations: stages that sum products of two loads. */

/* True if the stage is a contraction. */
bool wpk_contraction_is(const struct wpk_program *program, int stage);

/* The number of the contraction that dominates the program's cost, or -1. */
int wpk_contraction_find(const struct wpk_program *program);

/* Copy the two loads of a contraction. `weight` is the load that depends on constants alone, if
 * there is one. */
void wpk_contraction_operands(const struct wpk_program *program, int stage, struct wpk_node *data,
                              struct wpk_node *weight);

/* The only dimension of the load whose index contains the axis; -1 for none or several. */
int wpk_contraction_only_dim(const struct wpk_program *program, const struct wpk_node *load,
                             int axis);

/* True if the axis occurs in the load's indices. An index that is not affine counts as using it. */
bool wpk_contraction_uses_axis(const struct wpk_program *program, const struct wpk_node *load,
                               int axis);

#endif
