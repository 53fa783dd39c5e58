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

/* How blocks of threads compute a group: a row of the table in target/gpu/space/template.c. */
enum wpk_cuda_template {
    WPK_CUDA_POINTWISE,  /* there is no reduction: a thread has a tile of the root */
    WPK_CUDA_ROWS,       /* the same, or a block has rows, and computes what they read, too */
    WPK_CUDA_SHARED,     /* threads of a block may share an element's terms, which are read once */
    WPK_CUDA_PRODUCTS,   /* a thread has a tile of a reduction, whose operands may be staged */
    WPK_CUDA_WINDOWS,    /* the same, and an operand may be read out of a box (moves.h) */
    WPK_CUDA_JOINED,     /* the same, and a block may compute transforms, too (transforms.h) */
    WPK_CUDA_TRANSFORMS, /* the root ends a chain of transforms */
};

/* A stage that may be staged while a reduction, or a transform, reads it. */
struct wpk_cuda_operand {
    int stage;
    int load;                     /* node of the reduction, which alone reads it */
    int along;                    /* the axis of the reduction that is the last one of its tensor */
    int tiled;                    /* j if the operand depends on it, else i */
    bool is_move, is_vector_move; /* what its copy is (target/gpu/space/moves.h) */
    double apart;                 /* elements from one neighbour to the next in memory */
    bool gathers;                 /* few neighbours of the copy are some in memory */
    bool planes;                  /* all terms of an element of `whole` lie together */
};

struct wpk_cuda_group {
    enum wpk_cuda_template kind;
    int root;     /* stage */
    int sum;      /* stage: the reduction that the root reads one to one; -1: none */
    int i, j;     /* axes of the root that a block of threads tiles; -1: none */
    int k;        /* axis of the reduction that is cut into steps; -1 without a reduction */
    int whole;    /* of WINDOWS an axis of rows of which a block may have several, or -1; of JOINED
                     the axis of the root that transforms need whole; else -1 */
    bool ordered; /* there are so many blocks that their order decides what is read again */
    struct wpk_cuda_operand operand[WPK_CUDA_OPERANDS_MAX];
    int operand_count;
    union {
        struct {                              /* ROWS */
            int row_axes;                     /* axes of the root before this one number its rows */
            bool in_row[WPK_CUDA_GROUPS_MAX]; /* the group can be computed in a row's block */
        };
        struct {       /* SHARED */
            bool rows; /* neighbours in memory are terms, so that neighbouring threads have them */
            struct wpk_cuda_stream stream[WPK_CUDA_STREAMS_MAX]; /* of the reduction */
            int stream_count;
        };
        struct { /* WINDOWS: the stage that copies the box, for operand `box_copy` */
            int box, box_copy;
            int64_t box_low;   /* where the first window begins in a row of the copy */
            bool box_sectored; /* the tensor's rows are sectors, and begin at those of the copy */
            /* Elements of each dimension of the box: those of a single point, and more for each
             * further element along i, j, `whole` and k. */
            int64_t box_point[WPK_RANK_MAX], box_more[WPK_RANK_MAX][WPK_CUDA_BOX_AXES];
        };
        struct { /* JOINED: the groups of transforms behind and before it, -1: none */
            int behind, before;
            int before_copy; /* the operand that those before it leave */
            /* The axis of the contraction that neighbouring threads run along when they write it,
             * which is axis `before_last` of what they write. */
            int before_along, before_last;
            /* Elements of a block along i, along j, that are whole tiles of those behind it; and
             * blocks of a launch, with the least elements along the other axis. */
            int64_t fit[2][WPK_CUDA_FITS_MAX], fit_blocks[2][WPK_CUDA_FITS_MAX];
            int fit_count[2];
        };
        int64_t tile[WPK_AXES_MAX]; /* TRANSFORMS: elements of each axis that a thread has */
    };
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
