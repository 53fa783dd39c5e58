/* SPDX-License-Identifier: Apache-2.0 */
/* Derivations: a program to an equivalent program. Algorithms, layouts, packing and the shape that
 * scheduling wants are all rewritings of the IR, so that every one of them is checked by the same
 * property: the derived program's reference equals the original's.
 *
 * All rewrite `program` in place and leave it tidy and valid; on failure it may be half changed and
 * is to be thrown away. WPK_EUNSUPPORTED means that the derivation does not apply here, which is an
 * answer, not an error. */
#ifndef WPK_OP_DERIVE_H
#define WPK_OP_DERIVE_H

#include "op/program.h"

#define WPK_WINOGRAD_POINTS_MAX 10
#define WPK_WINOGRAD_PAIRS_MAX 2

/* ---- algorithms */

/* Minimal filtering F(m, r) along every correlated pair of axes of the contraction: an output axis
 * y and a reduction axis s of extent r > 1 that meet in one index as y + s + constant and nowhere
 * else. One pair gives the 1-D form, two the nested 2-D form, with r of each pair its own.
 *
 *   source  Winograd 1980 through Lavin & Gray 2016; matrices by Toom-Cook at the points
 *           of winograd_points.c
 *   errors  WPK_EUNSUPPORTED no such pair, more than two, or too many points for the type
 */
wpk_err wpk_derive_winograd(struct wpk_program *program, int64_t m);

/* The same with an m for each pair, in the order of their output axes.
 *   shape   m [WPK_WINOGRAD_PAIRS_MAX]
 *   errors  WPK_EUNSUPPORTED also: one pair, and numbers that differ */
wpk_err wpk_derive_winograd_per_axis(struct wpk_program *program, const int64_t *m);

/* Fill the matrices of F(m, r): y = at [m][n] ((g [n][r] w) * (bt [n][n] x)), n = m + r - 1.
 *   errors  WPK_ERANGE n exceeds WPK_WINOGRAD_POINTS_MAX */
wpk_err wpk_winograd_matrices(int64_t m, int64_t r, double *at, double *g, double *bt);

/* Turn a strided window of the contraction into one without stride over the phases of its data,
 * which join one of the reduction axes ("space to depth"): what minimal filtering needs. The data
 * is copied to an extent that holds whole tiles of `tile` outputs, which are counted as m is above.
 *   shape   tile [WPK_WINOGRAD_PAIRS_MAX]
 *   errors  WPK_EUNSUPPORTED no strided window, or no axis that phases could join */
wpk_err wpk_derive_phases(struct wpk_program *program, const int64_t *tile);

/* Gather what the contraction reads of its window operand into a matrix, one row for each output
 * point and one column for each step of the (fused) reduction: the contraction becomes a matrix
 * product.
 *   errors  WPK_EUNSUPPORTED it is one already */
wpk_err wpk_derive_im2col(struct wpk_program *program);

/* ---- layouts */

/* Reorder the dimensions of all tensors of rank `rank` that are neither constants nor literals:
 * dimension d of the result is dimension order[d] of before. */
wpk_err wpk_derive_permute(struct wpk_program *program, const int *order, int rank);

/* Give inputs the zero border that the loads need, where those loads read 0 outside. Dimension
 * `bare` (-1: none) gets no border: its loads keep reading 0 outside, which costs nothing where the
 * axes in its index are unrolled and saves the multiplications by zero. */
wpk_err wpk_derive_halo(struct wpk_program *program, int bare);

/* Make `tensor`, an input, an intermediate that a first stage copies from a row-major input of the
 * same name, dimension d of which is dimension order[d] of the tensor (NULL: the same order). The
 * copy holds whatever the loads read outside, so that no load needs a bounds check; dimension
 * `bare` (-1: none) is copied without its border, as above. */
wpk_err wpk_derive_stage_input(struct wpk_program *program, int tensor, const int *order, int bare);

/* The same at the other end: the output is copied from an intermediate in the program's order. */
wpk_err wpk_derive_stage_output(struct wpk_program *program, int tensor, const int *order);

/* ---- the shape that scheduling wants */

/* Cut the reduction of `stage` into `lanes` partial reductions along its axis `axis` (a reduction
 * axis whose extent is a multiple of it), reduced by a second stage: what lets a reduction over the
 * contiguous axis be vectorized. */
wpk_err wpk_derive_split_reduction(struct wpk_program *program, int stage, int axis, int64_t lanes);

/* Cut it into partial reductions over `block` consecutive terms of `axis` each, which divides its
 * extent: every block starts from nothing, so that rounding errors of sums grow with the length of
 * a block and the number of blocks, not with the number of terms. The block is the first axis of
 * the partial results, and the only one that the second stage reduces.
 *   shape   name [WPK_NAME_MAX] of the partial results */
wpk_err wpk_derive_block_reduction(struct wpk_program *program, int stage, int axis, int64_t block,
                                   char *name);

/* Follow a reduction by a pointwise stage that copies it. */
wpk_err wpk_derive_copy_after(struct wpk_program *program, int stage);

/* How the dimensions of a load's tensor are packed. */
struct wpk_packing {
    int tensor;                  /* what is packed */
    int dim_count;               /* of the packed tensor */
    int dim[WPK_RANK_MAX];       /* [dim_count] dimension of the tensor, outermost first */
    int64_t block[WPK_RANK_MAX]; /* [dim_count] > 0: remainder by block, < 0: quotient by -block,
                                     0: the whole dimension */
};

/* Copy the tensor into packed order before its first use and load the copy in its stead. A packed
 * constant becomes part of the prepare program. Blocks that do not divide are filled with 0.
 *   errors  WPK_EUNSUPPORTED such a block, and a load that reads other than 0 outside; a load that
 *           reads the tensor's border; nothing is changed then
 *   shape   name [WPK_NAME_MAX] of the packed tensor, or NULL */
wpk_err wpk_derive_pack(struct wpk_program *program, const struct wpk_packing *packing, char *name);

#endif
