/* SPDX-License-Identifier: Apache-2.0 */
/* Derivations rewrite a program to an equivalent one. Algorithms, layouts, packing and the form
 * that scheduling needs are all derivations, so that one test checks them all: the reference values
 * of the derived program equal those of the original.
 *
 * All functions rewrite `program` in place and leave it tidy (rewrite.h) and valid. After a failure
 * the program may be half changed: the caller frees it. WPK_EUNSUPPORTED: the derivation does not
 * apply to this program. WPK_ENOSPC, WPK_ENOMEM: a limit is reached, or memory runs out. */
#ifndef WPK_IR_DERIVE_DERIVE_H
#define WPK_IR_DERIVE_DERIVE_H

#include "ir/program.h"

#define WPK_WINOGRAD_POINTS_MAX 10
#define WPK_WINOGRAD_PAIRS_MAX 2

/* ---- algorithms */

/* These rewrite one stage, a contraction (extract.h). Numbers of stages change; the name of the
 * tensor that the stage writes says afterwards where it is, if it is still there. rewriting.h lists
 * them with the parameters that are worth a trial. */

/* Apply minimal filtering F(m, r) along every correlated pair of axes of the stage: an output
 * axis y and a reduction axis s of extent r > 1 that meet in one index as y + s + constant and
 * nowhere else. One pair gives the 1-D form, two the nested 2-D form; each pair has its own r, and
 * m, in the order of their output axes.
 *
 *   shape   m [WPK_WINOGRAD_PAIRS_MAX]
 *   source  Winograd 1980 through Lavin & Gray 2016; matrices by Toom-Cook at the points
 *           of winograd_points.c
 *   errors  WPK_EUNSUPPORTED no such pair, more than two, one whose numbers differ, or too many
 *           points for the type
 */
wpk_err wpk_derive_winograd(struct wpk_program *program, int stage, const int64_t *m);

/* Fill the matrices of F(m, r): y = at [m][n] ((g [n][r] w) * (bt [n][n] x)), n = m + r - 1.
 *   errors  WPK_ERANGE n exceeds WPK_WINOGRAD_POINTS_MAX */
wpk_err wpk_winograd_matrices(int64_t m, int64_t r, double *at, double *g, double *bt);

/* Turn a strided window of the stage into a window without stride, as minimal filtering
 * needs, over the phases of its data, which join one of the reduction axes ("space to depth"). The
 * data is copied to an extent of whole tiles of `tile` outputs, one number for each pair as for m.
 *   shape   tile [WPK_WINOGRAD_PAIRS_MAX]
 *   errors  WPK_EUNSUPPORTED no strided window, or no axis that phases could join */
wpk_err wpk_derive_phases(struct wpk_program *program, int stage, const int64_t *tile);

/* Turn a dilated window of the stage into windows without dilation, one for each phase of the
 * outputs, which become outer axes of a stage of their own. The data is copied to an extent of
 * whole tiles of `tile` outputs of a phase, one number for each pair as for m.
 *   shape   tile [WPK_WINOGRAD_PAIRS_MAX]; name [WPK_NAME_MAX] of the tensor of those windows
 *   errors  WPK_EUNSUPPORTED no dilated window, or too many axes */
wpk_err wpk_derive_dilated(struct wpk_program *program, int stage, const int64_t *tile, char *name);

/* Let a window with a stride along the data's last dimension read a copy of the data that is split
 * by the residues of its columns: the vectors along the window's outputs are contiguous then.
 *   errors  WPK_EUNSUPPORTED no such window */
wpk_err wpk_derive_residues(struct wpk_program *program, int stage);

/* Turn the maximum or minimum of a window of two dimensions or more into that of its rows, a stage
 * of its own, and of their results.
 *   errors  WPK_EUNSUPPORTED another stage than a maximum or minimum of a plain load's window */
wpk_err wpk_derive_separated(struct wpk_program *program, int stage);

/* Gather the elements that the stage reads of its window operand into a matrix, one row for each
 * output point and one column for each step of the (fused) reduction: the stage becomes a matrix
 * product.
 *   errors  WPK_EUNSUPPORTED it is a matrix product already */
wpk_err wpk_derive_im2col(struct wpk_program *program, int stage);

/* Let the stage read a copy of what its load, the node `load`, reads: a tensor over the axes of
 * the stage that the load depends on. Unless each dimension is at an axis of its own, or of a
 * constant in any case, the axis `last` of the stage is the copy's last; -1: any.
 *   errors  WPK_EUNSUPPORTED the load depends on no axis, or on too many */
wpk_err wpk_derive_gather(struct wpk_program *program, int stage, int load, int last);

/* Let the stage read a copy of what its load, the node `load`, reads: all elements from the
 * first to the last index in each dimension, with the value outside of the tensor where there
 * are none. Each is in the copy once, however many windows read it. Rows whose length is a multiple
 * of `multiple` begin and end at multiples of it in the copy, too.
 *   errors  WPK_EUNSUPPORTED the load reads no windows that overlap, or what is outside of the
 *           tensor is no number */
wpk_err wpk_derive_box(struct wpk_program *program, int stage, int load, int64_t multiple);

/* Make one axis of adjacent axes of the stage, each longer than 1, that all its loads address as
 * one. Where no other stage needs them apart, the same is done in all stages that they go through,
 * or else what those stages write keeps its dimensions, and what they read is copied. All other
 * dimensions that the axes index become one, too, those of inputs, constants and outputs
 * among them: their elements stay where they are.
 *   errors  WPK_EUNSUPPORTED there are no such axes */
wpk_err wpk_derive_collapse(struct wpk_program *program, int stage);

/* ---- layouts */

/* Reorder the dimensions of all tensors of rank `rank` that are neither constants nor literals:
 * dimension d of the result is dimension order[d] of before. */
wpk_err wpk_derive_permute(struct wpk_program *program, const int *order, int rank);

/* Give each intermediate the order of dimensions in which all its readers run through it. */
wpk_err wpk_derive_reading_order(struct wpk_program *program);

/* Give inputs the zero border that their loads need, where loads read 0 outside. Dimension bare[t]
 * of input t (-1: none) gets no border: its loads keep reading 0 outside. Where the axes in its
 * index are unrolled this costs nothing, and saves the multiplications by zero.
 *   shape   bare [tensor_count], or NULL: none */
wpk_err wpk_derive_halo(struct wpk_program *program, const int *bare);

/* Copy the input `tensor` in a first stage to an intermediate, which all loads then read. Dimension
 * d of the copy is dimension order[d] of the input (NULL: the same order), which is row-major. The
 * copy includes the elements outside that loads read, so that no load needs a bounds check;
 * dimension `bare` (-1: none) is copied without a border, as above.
 *   errors  WPK_EUNSUPPORTED not an input, or its loads read different values outside */
wpk_err wpk_derive_stage_input(struct wpk_program *program, int tensor, const int *order, int bare);

/* Copy each intermediate that a reduction reads outside of, with the elements outside, as inputs
 * are copied: the reduction then needs no bounds check. A tensor that is read with several values
 * outside stays. */
wpk_err wpk_derive_borders(struct wpk_program *program);

/* Let the rows of copies with a border that outputs run along end at a multiple of `multiple`
 * elements, where that adds at most a quarter: vectors at the same place of each row then have the
 * same alignment. */
wpk_err wpk_derive_whole_rows(struct wpk_program *program, int64_t multiple);

/* Turn the output `tensor` into an intermediate, which a last stage copies to a row-major output of
 * the same name. Dimension d of the intermediate is dimension order[d] of the output.
 *   errors  WPK_EUNSUPPORTED not an output */
wpk_err wpk_derive_stage_output(struct wpk_program *program, int tensor, const int *order);

/* ---- spelling */

/* Put every pointwise intermediate that is read once, by a stage of the same axes at its own
 * element, into the expression of that stage. Leave out intermediates that only move elements:
 * their readers read the elements where they come from, and a stage whose elements another one
 * only stores in another order stores them so itself. */
wpk_err wpk_derive_inline(struct wpk_program *program);

/* Rewrite what can be spelled in several ways to one of them (ir/derive/spelling.c says which), up
 * to the rounding of quotients. */
wpk_err wpk_derive_spelling(struct wpk_program *program);

/* ---- the form that scheduling needs */

/* Cut the reduction of `stage` into `lanes` partial reductions along its reduction axis `axis`. A
 * second stage reduces the partial results. The reduction over a contiguous axis can then be
 * vectorized. Terms beyond a multiple of `lanes` are reduced by a stage of their own. */
wpk_err wpk_derive_split_reduction(struct wpk_program *program, int stage, int axis, int64_t lanes);

/* Cut the reduction of `stage` into partial reductions over `block` consecutive terms of `axis`
 * each, where `block` divides the extent. Rounding errors of the sum then grow with the length and
 * the number of blocks, not with the number of terms. The block's number is the first axis of the
 * partial results, and the only axis that the second stage reduces.
 *   shape   name [WPK_NAME_MAX] of the partial results */
wpk_err wpk_derive_block_reduction(struct wpk_program *program, int stage, int axis, int64_t block,
                                   char *name);

/* Follow the reduction `stage` by a pointwise stage that copies its result.
 *   shape   name [WPK_NAME_MAX] of the tensor that the reduction then writes, or NULL */
wpk_err wpk_derive_copy_after(struct wpk_program *program, int stage, char *name);

/* How the dimensions of a load's tensor are packed. */
struct wpk_packing {
    int tensor;                  /* the tensor to pack */
    int dim_count;               /* dimensions of the packed tensor */
    int dim[WPK_RANK_MAX];       /* [dim_count] dimension of the tensor, outermost first */
    int64_t block[WPK_RANK_MAX]; /* [dim_count] > 0: remainder by block, < 0: quotient by -block,
                                     0: the whole dimension */
};

/* Copy the tensor into packed order before its first use, and load the copy instead. A constant is
 * packed in the prepare program. A block that does not divide its extent is filled with 0.
 *   errors  WPK_EUNSUPPORTED a load reads the tensor's border; or a block does not divide and a
 *           load reads another value than 0 outside. The program is then unchanged.
 *   shape   name [WPK_NAME_MAX] of the packed tensor, or NULL */
wpk_err wpk_derive_pack(struct wpk_program *program, const struct wpk_packing *packing, char *name);
/* True if some load reads the tensor's own border, which a packed copy does not have. */
bool wpk_pack_reads_border(const struct wpk_program *program, int tensor);
/* True if some load reads another value than 0 outside the tensor. It would read the filling of a
 * block that does not divide in its stead. */
bool wpk_pack_reads_outside(const struct wpk_program *program, int tensor);

/* ---- programs with one fault in one stage, which verification must detect */

/* suffix, text, what the stage computes instead */
#define WPK_FAULT_LIST(X)                                                                          \
    X(FIRST, "first term dropped") /* of its reduction */                                          \
    X(LAST, "last term dropped")                                                                   \
    X(NEIGHBOUR, "neighbour's value") /* the element one further along an axis */                  \
    X(IDENTITY, "identity")           /* the first term alone, or its first operand as it is */

#define WPK_FAULT_ENUM(name, text) WPK_FAULT_##name,
enum wpk_fault { WPK_FAULT_LIST(WPK_FAULT_ENUM) WPK_FAULT_COUNT };

const char *wpk_fault_name(enum wpk_fault fault);

/* Copy `program` with `fault` in one stage. A neighbour's value is that along output axis `axis`;
 * the other faults exist for axis 0 only.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOENT the stage cannot have this fault; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_fault_make(const struct wpk_program *program, int stage, enum wpk_fault fault, int axis,
                       struct wpk_program *out);

#endif
