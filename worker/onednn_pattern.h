/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of onednn_match.c: what is read off one stage with a reduction. */
#ifndef WPK_WORKER_ONEDNN_PATTERN_H
#define WPK_WORKER_ONEDNN_PATTERN_H

#include "worker/onednn_match.h"

/* `node` without conversions between floating types: they change precision, not the function. */
int wpk_onednn_bare(const struct wpk_program *program, int node);

/* Start an operand: no dimensions yet. */
void wpk_onednn_operand_begin(struct wpk_onednn_operand *operand, int tensor);
/* Add a dimension: dimension `dim` of the tensor, or one of extent 1 when `dim` is -1. */
void wpk_onednn_operand_add(const struct wpk_program *program, struct wpk_onednn_operand *operand,
                            int dim);

/* Is the stage's expression a product of two loads, and if so, a matrix product, a convolution?
 * Is it a load, and if so, a pooling? Fills kind, src, weights and dst; dst is the program's
 * output, whose dimensions are the stage's output axes; `bias` is a load node or -1, in terms of
 * the same axes. */
bool wpk_onednn_match_matmul(const struct wpk_program *program, const struct wpk_stage *stage,
                             int bias, struct wpk_onednn_op *op);
bool wpk_onednn_match_convolution(const struct wpk_program *program, const struct wpk_stage *stage,
                                  int bias, struct wpk_onednn_op *op);
bool wpk_onednn_match_pooling(const struct wpk_program *program, const struct wpk_stage *stage,
                              struct wpk_onednn_op *op);

#endif
