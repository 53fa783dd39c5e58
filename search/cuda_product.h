/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of a matrix product on a GPU.
 *
 * A block of threads computes a tile of the two last axes of the output, and has the reduction's
 * operands of a few terms at a time in shared memory; a thread computes a smaller tile in
 * registers. Other axes are blocks of their own. Genes, of an output Y[.., i, j] with terms k:
 *
 *     Y.block.i, Y.block.j      elements in the tile of a block
 *     Y.thread.i, Y.thread.j    elements in the tile of a thread
 *     Y.step.k                  terms that are staged at a time
 *     Y.stage.A                 "shared": the operand is staged; "no": each thread reads it */
#ifndef WPK_SEARCH_CUDA_PRODUCT_H
#define WPK_SEARCH_CUDA_PRODUCT_H

#include "search/space_kind.h"

#define WPK_CUDA_OPERANDS_MAX 2

extern const struct wpk_space_kind wpk_space_cuda;

#endif
