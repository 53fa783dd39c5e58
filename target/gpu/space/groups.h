/* SPDX-License-Identifier: Apache-2.0 */
/* The launches of a program on a GPU, found once a variant.
 *
 * A group is one launch. The root of a group is a pointwise stage, which threads compute tile by
 * tile. If the root reads a reduction one to one, the reduction is computed in the registers of the
 * same threads; a contraction's operands may be staged in shared memory there. Pointwise stages
 * that would be computed at most twice an element, or that only move values, are inlined into what
 * reads them. Every other stage is a group of its own, which leaves its tensor in global memory.
 * Transforms are computed by the threads of the stage that reads the last of them, which may be
 * those of the contraction before or behind them (target/gpu/space/transforms.h).
 *
 * A group may have rows: then it can compute what it reads for a row of its root in the same
 * launch, in shared memory, if nothing else reads that. All of softmax is one launch so.
 *
 *     convolution:  { Y <- T <- X_t }             softmax:  { M <- M_r }  { D <- D_r }  { S }
 */
#ifndef WPK_TARGET_GPU_SPACE_GROUPS_H
#define WPK_TARGET_GPU_SPACE_GROUPS_H

#include "ir/program.h"

#define WPK_CUDA_GROUPS_MAX 48
#define WPK_CUDA_OPERANDS_MAX 2
#define WPK_CUDA_STREAMS_MAX 4
#define WPK_CUDA_FITS_MAX 8
#define WPK_CUDA_BOX_AXES 4
#define WPK_CUDA_INLINED (-1)
#define WPK_CUDA_PREPARED (-2) /* the prepare program computes the stage */

/* A load of a reduction: the axis along which neighbours lie in memory, -1: none, and the axes that
 * the load depends on, a bit each. */
struct wpk_cuda_stream {
    int along;
    unsigned axes;
};

struct wpk_cuda_group {
    int root; /* stage */
    int sum;  /* stage: the reduction that the root reads one to one; -1: none */
    int i, j; /* axes of the root that a block of threads tiles; -1: none */
    int k;    /* axis of the reduction that is cut into steps; -1 without a reduction */
    int copy[WPK_CUDA_OPERANDS_MAX]; /* stages: operands that may be staged */
    int copy_count;
    /* Of each operand: the axis of the reduction that is the last one of its tensor, and what its
     * copy is (target/gpu/space/moves.h). */
    int along[WPK_CUDA_OPERANDS_MAX];
    int tiled[WPK_CUDA_OPERANDS_MAX]; /* j if the operand depends on it, else i */
    bool is_move[WPK_CUDA_OPERANDS_MAX], is_vector_move[WPK_CUDA_OPERANDS_MAX];
    double apart[WPK_CUDA_OPERANDS_MAX]; /* elements from one neighbour to the next in memory */
    bool gathers[WPK_CUDA_OPERANDS_MAX]; /* few neighbours of the copy are some in memory */
    /* Threads of a block may share the terms of an element: operands are read once. `rows`:
     * neighbours in memory are terms, so that neighbouring threads have them. */
    bool shares, rows;
    struct wpk_cuda_stream stream[WPK_CUDA_STREAMS_MAX]; /* of the reduction, if it shares */
    int stream_count;
    bool ordered; /* there are so many blocks that their order decides what is read again */
    /* Axes of the root before this one number its rows; the others are inside a row. 0: none */
    int row_axes;
    bool transforms;            /* the root ends a chain of transforms (transforms.h) */
    int64_t tile[WPK_AXES_MAX]; /* then: elements of each axis of the root that a thread has */
    bool in_row[WPK_CUDA_GROUPS_MAX]; /* the group can be computed in a row's block */
    /* Groups of transforms that a contraction's block may compute, too (space/transforms.h),
     * -1: none; the operand that those before it leave; the axis of the contraction that
     * neighbouring threads run along when they write it, which is axis `before_last` of what they
     * write. */
    int behind, before, before_copy, before_along, before_last;
    int whole;                          /* axis of the root that they need whole */
    bool planes[WPK_CUDA_OPERANDS_MAX]; /* all terms of an element of `whole` lie together */
    /* Of a contraction that reads windows (target/gpu/space/moves.h): the stage that copies the box
     * of what they read, for operand `box_copy`, -1: there is none; `whole` is then an axis of rows
     * that a block may have several of, or -1. Elements of each dimension of the box: those of a
     * single point, and more for each further element along i, j, `whole` and k. */
    int box, box_copy;
    int64_t box_low;   /* where the first window begins in a row of the copy */
    bool box_sectored; /* the tensor's rows are whole sectors, and begin at sectors of the copy */
    int64_t box_point[WPK_RANK_MAX], box_more[WPK_RANK_MAX][WPK_CUDA_BOX_AXES];
    /* Elements of a block along i, along j, that are whole tiles of those behind it; and blocks of
     * a launch, with the least elements along the other axis. */
    int64_t fit[2][WPK_CUDA_FITS_MAX], fit_blocks[2][WPK_CUDA_FITS_MAX];
    int fit_count[2];
};

struct wpk_cuda_groups {
    struct wpk_cuda_group group[WPK_CUDA_GROUPS_MAX]; /* in the order of the launches */
    int count;
    int group_of[WPK_STAGES_MAX]; /* or one of the two above */
};

/* Bring the program into the form that groups need: each reduction has a pointwise reader of its
 * own, long reductions are cut into parts where threads cannot share their terms, and operands have
 * copies.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
wpk_err wpk_cuda_groups_normalize(struct wpk_program *program, bool strict);

/* Find the groups of a normalized program. `strict`: reductions are cut along their last axis, so
 * that terms are added in the order in which they are written, and no threads share them.
 *   errors  WPK_EUNSUPPORTED a tensor's type is none that the back end computes with; WPK_ENOSPC */
wpk_err wpk_cuda_groups_find(const struct wpk_program *program, bool strict,
                             struct wpk_cuda_groups *out);


/* The number of tiles along an axis of a root that ends transforms. */
int64_t wpk_cuda_tiles_along(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                             int axis);

#endif
