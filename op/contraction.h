/* SPDX-License-Identifier: Apache-2.0 */
/* The contraction of a program, as derivations see it: a stage that sums products of two loads. */
#ifndef WPK_OP_CONTRACTION_H
#define WPK_OP_CONTRACTION_H

#include "op/program.h"

/* The stage that dominates the program's cost and is a sum of a product of two loads, or -1. */
int wpk_contraction_find(const struct wpk_program *program);

/* Copies of its two loads; the weight is the one that depends on constants alone, if one does. */
void wpk_contraction_operands(const struct wpk_program *program, int stage, struct wpk_node *data,
                              struct wpk_node *weight);

/* The only dimension of the load whose index contains the axis; -1: none, or several. */
int wpk_contraction_only_dim(const struct wpk_program *program, const struct wpk_node *load,
                             int axis);

/* Does the axis occur in the load's indices? An index that is not affine counts as using it. */
bool wpk_contraction_uses_axis(const struct wpk_program *program, const struct wpk_node *load,
                               int axis);

#endif
