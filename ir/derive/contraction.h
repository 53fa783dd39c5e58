/* SPDX-License-Identifier: Apache-2.0 */
/* The contractions of a program, for derivations: stages that sum products of two loads. */
#ifndef WPK_IR_DERIVE_CONTRACTION_H
#define WPK_IR_DERIVE_CONTRACTION_H

#include "ir/program.h"

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
