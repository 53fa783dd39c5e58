/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates on a GPU: for each group of the program (target/gpu/space/groups.h) how a block of
 * threads computes a tile of the root. A thread computes a smaller tile, in registers. Axes that
 * are not tiled are blocks of their own. Genes, of a root Y[.., i, j] that reads a sum over k:
 *
 *     Y.block.i, Y.block.j      elements in the tile of a block
 *     Y.thread.i, Y.thread.j    elements in the tile of a thread
 *     Y.step.k                  terms that are staged at a time
 *     Y.parts.k                 blocks that share a tile's terms, in one launch
 *     Y.share.k                 threads of a block that share an element's terms
 *     Y.order                   blocks along i that precede the next ones along j
 *     Y.stage.A                 "shared": the operand, or what is transformed, is staged;
 *                               "shared4": in moves of four elements; "box": as what a window of it
 *                               reads (target/gpu/space/moves.h); "no": each thread reads it
 *     Y.depth                   buffers of the staged operands: with several, copies are ahead
 *     Y.copies                  "async": operands that are copied as they are; "load": by threads
 *     Y.padding.A               elements behind each row of terms of the staged operand
 *     Y.unroll.k                terms of a step that are written out
 *     Y.rows                    rows of a block that computes what they read, too; "apart": it does
 *                               not, and the genes above decide
 *     Y.threads                 of such a row
 *     M.at                      "Y": the transforms behind the contraction M, which end in Y, are
 *                               computed in its blocks; "root": in a launch of their own
 *     V.at                      "M": those before it, which end in V (space/transforms.h)
 *     M.together.l              elements of the axis that the transforms need whole, or rows of a
 *                               box, that a block has at a time
 *     Y.virtual.i, Y.virtual.j  virtual threads: pieces of the tile of a thread, which lie apart
 *                               by such pieces of all threads
 *
 * The rules and the rank of a group depend on its own genes alone, but for transforms in a
 * contraction's blocks, whose rank is one number. */
#ifndef WPK_TARGET_GPU_SPACE_SPACE_H
#define WPK_TARGET_GPU_SPACE_SPACE_H

#include "search/space.h"

/* These fill slots of the table of GPUs (search/rules.h). */

bool wpk_cuda_are_legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        const char **why);
wpk_err wpk_cuda_bound_all(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           double *seconds);
/* Redraw genes of each group until it is legal, as it is or with its last genes guessed; at last it
 * becomes the neutral one, by the first back end where none is legal by its own. */
wpk_err wpk_cuda_repair(const struct wpk_space *space, struct wpk_rng *rng,
                        struct wpk_candidate *candidate);
/* The candidates of the least bounds, of all if they are few. The best of each algorithm and layout
 * are among them, and as far as half of the places reach the best of each split. They are of the
 * first back end that the space has; each other one has a candidate behind the first few. */
wpk_err wpk_cuda_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                           int *filled);

/* Set the group's last genes to what fits its others best: they are not ranked beside all values of
 * the others. Returns how many there are. */
int wpk_cuda_guess_genes(const struct wpk_space *space, int group, struct wpk_candidate *candidate);

#endif
