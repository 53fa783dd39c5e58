/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles that a candidate decides on: its genes (target/gpu/space/space.h) as numbers. */
#ifndef WPK_TARGET_GPU_SPACE_TILES_H
#define WPK_TARGET_GPU_SPACE_TILES_H

#include "search/space.h"
#include "target/gpu/space/groups.h"

/* The genes of a group, in the order in which they are listed. One without a reduction has the
 * first four and, if it can have rows, their number and the threads of one; others have steps and
 * parts. Then follow the threads that share terms, if there can be any, or the order of blocks, if
 * there are many, a gene of each operand, and the depth, if one can be copied ahead, then those of
 * what its blocks may transform, too (space/transforms.h). The last ones can be guessed: rows'
 * padding, terms that are written out, how operands are copied, and virtual threads, where a tile
 * can have several. One that transforms has the first two, and that of what it copies. */
enum {
    WPK_CUDA_BLOCK_I,
    WPK_CUDA_BLOCK_J,
    WPK_CUDA_THREAD_I,
    WPK_CUDA_THREAD_J,
    WPK_CUDA_STEP,
    WPK_CUDA_BLOCK_ROWS = WPK_CUDA_STEP,
    WPK_CUDA_PARTS,
    WPK_CUDA_ROW_THREADS = WPK_CUDA_PARTS,
    WPK_CUDA_SHARE,
    WPK_CUDA_ORDER = WPK_CUDA_SHARE,
    WPK_CUDA_STAGED = WPK_CUDA_SHARE
};

#define WPK_CUDA_WINDOW_UNROLLED 8 /* points of a window's last axis that are written out */

/* Where an operand is staged: the value of its gene. */
enum { WPK_CUDA_STAGE_NO, WPK_CUDA_STAGE_SHARED, WPK_CUDA_STAGE_BOX };

/* Data that the space keeps for a derived variant. */
struct wpk_cuda_kept {
    struct wpk_cuda_groups groups;
    int first[WPK_CUDA_GROUPS_MAX + 1]; /* gene of each group; the last one: of all */
    struct wpk_cuda_guessed_genes {
        int padding[WPK_CUDA_OPERANDS_MAX], unroll, copies, virtual_threads[2]; /* -1: none */
        int count;
    } guessed[WPK_CUDA_GROUPS_MAX];  /* its last ones */
    int staged[WPK_CUDA_GROUPS_MAX]; /* gene of the first operand */
    struct wpk_cuda_join_genes {
        int together, behind, before; /* -1: none */
    } join[WPK_CUDA_GROUPS_MAX];
    double apart[WPK_CUDA_GROUPS_MAX]; /* seconds of transforms in a launch of their own, at best */
};

/* The decisions of a candidate for a group. */
struct wpk_cuda_tiles {
    int64_t block[2], thread[2]; /* of i, of j; 1 without the axis */
    int64_t step;                /* 0: there is no reduction */
    int64_t order;               /* blocks along i that precede the next ones along j */
    int64_t parts;               /* blocks that share a tile's terms */
    int64_t share;               /* threads that share an element's terms, or a row */
    int64_t rows;                /* of a block, which computes what they read; 0: it does not */
    bool staged[WPK_CUDA_OPERANDS_MAX];
    bool vectors[WPK_CUDA_OPERANDS_MAX]; /* it is copied four elements at a time */
    int64_t depth;                       /* buffers of the staged operands; 1: none is ahead */
    bool async;                          /* they are copied asynchronously */
    /* Elements behind each row of terms of a staged operand; 0: it has no such rows. */
    int64_t padding[WPK_CUDA_OPERANDS_MAX];
    int64_t virtual_threads[2]; /* pieces of the tile of a thread, of i, of j */
    int64_t piece[2];           /* neighbours in a piece */
    int64_t unrolled;           /* terms of a step that are written out */
    bool behind, before;        /* the block computes the transforms behind it, before it */
    bool box;                   /* what a window reads lies in shared memory as it is */
    int64_t together; /* elements of the axis `whole` that it computes at a time; 1: one a block */
    int64_t threads;
};

/* Neighbours along an axis that a thread has of it, if `threads` run along the axis: so many are
 * one access of memory. */
int64_t wpk_cuda_vector(int64_t extent, int64_t threads);
/* The same of the terms that threads share. */
int64_t wpk_cuda_term_vector(const struct wpk_program *program, const struct wpk_cuda_group *group,
                             const struct wpk_cuda_tiles *t);
/* True if each thread of a row has what group `g` computes for it: a number, of a reduction whose
 * terms the row's threads share, or made of such numbers. */
bool wpk_cuda_is_in_registers(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                              const struct wpk_cuda_group *host, int g);
/* True if some operand of the group can be copied asynchronously. */
bool wpk_cuda_may_be_async(const struct wpk_cuda_group *group);
/* The axis along which the operand's elements are neighbours in shared memory. */
int wpk_cuda_along(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t, int operand);
/* True if the operand is staged in rows of terms, which may be padded. */
bool wpk_cuda_has_rows_of_terms(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                                int operand);
/* True if the operand's elements are copied as they are while it is staged. */
bool wpk_cuda_is_copied(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                        int operand);

/* The number among the fits of a joined group of the tile along i or j, -1: it is none. */
int wpk_cuda_find_fit(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                      int along_j);

/* Terms of an element in a step: where there is a box, all that the window has of them. */
int64_t wpk_cuda_step_terms(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t);
/* Words that a thread reads of a staged operand at a time: neighbouring terms, or the neighbours
 * of a piece. */
int64_t wpk_cuda_width(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                       int operand);
/* Elements behind what is staged for each element of the axis of which a block has several at a
 * time, so that neighbouring threads, which have some of these, read without conflicts. */
int64_t wpk_cuda_spacing(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                         int operand);

/* The contraction whose blocks compute group `g`, or -1: the group is a launch, or has no
 * transforms. */
int wpk_cuda_joined_to(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                       int g);

/* Set what the last genes of the group decide to what fits the others: elements behind rows of
 * terms with which threads read columns without conflicts; all terms of a step, unless they are too
 * much code; asynchronous copies ahead; and the virtual threads with which threads access memory
 * best. Generation 0 takes these values where the model finds others as good. */
void wpk_cuda_guess(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                    struct wpk_cuda_tiles *t);
/* True if a thread's products of so many terms are little enough to be written out. */
bool wpk_cuda_may_unroll(const struct wpk_cuda_tiles *t, int64_t terms);

const struct wpk_cuda_kept *wpk_cuda_kept_of(const struct wpk_variant *variant);
/* The genes before those that are guessed, of what its blocks may transform, too. */
void wpk_cuda_tiles_read(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                         int group, struct wpk_cuda_tiles *out);
/* The next choices of so many genes, in the order of numbers; false after the last ones, when all
 * have their first choice again. */
bool wpk_cuda_advance(const struct wpk_variant *variant, int first, int count,
                      struct wpk_candidate *candidate);

#endif
