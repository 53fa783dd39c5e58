/* SPDX-License-Identifier: Apache-2.0 */
/* A launch of a CUDA kernel while it is printed: what the files cuda_*.c share.
 *
 *     target/gpu/print.c    the whole: two passes, functions, the plan of launches
 *     target/gpu/text.c  a definition's loops: which are blocks and threads
 *     cuda_nest.c     loops over blocks and threads, barriers, places
 *     target/gpu/point.c    elements behind their guards, alone or four together
 *     target/gpu/copy.c     copies of 16 bytes, and asynchronous ones
 *     target/gpu/copy.c    loads of 16 bytes
 *     target/gpu/parts.c    parts of a reduction in several blocks
 *     target/gpu/shares.c   and in several threads of one
 *     target/gpu/launch.c   numbers of threads, shared memory, the elements that a thread has
 *     target/gpu/text.c     what stands before the kernels
 *     target/gpu/nvrtc.c    the compiler
 *
 * Expressions, regions, index arithmetic and storages are those of the back end c
 * (target/c/kernel.h), one lane wide. A launch has one dimension of blocks and one of threads: each
 * definition cuts its own loops out of the two numbers, and a definition with fewer threads than
 * the launch leaves the others idle. */
#ifndef WPK_TARGET_GPU_KERNEL_H
#define WPK_TARGET_GPU_KERNEL_H

#include "target/c/kernel.h"

#define WPK_CUDA_THREADS_MAX 1024               /* of a block: every architecture */
#define WPK_CUDA_SHARED_MAX ((int64_t)48 << 10) /* bytes that need no attribute of the function */
#define WPK_CUDA_PARTS_MAX 64
#define WPK_CUDA_SHARES_MAX 32
#define WPK_CUDA_LIMITS_MAX 16
#define WPK_CUDA_NOTED_MAX 64
#define WPK_CUDA_FETCHED_MAX 8
#define WPK_CUDA_VECTOR 4 /* elements of 16 bytes */

/* The variable "threadIdx.x / inside % count". Definitions that cut the number alike have the same
 * variable, so that their indices cancel. */
struct wpk_cuda_part {
    int64_t inside, count;
    int atom;
};

/* Shared memory of a tensor, as large as its largest storage. */
struct wpk_cuda_share {
    int tensor;
    int64_t elements;
};

/* Four neighbours of a tensor in global memory, which are loaded as one. */
struct wpk_cuda_fetch {
    int tensor;
    struct wpk_form at; /* number of the first */
    int name;           /* of the variable */
};

struct wpk_cuda_launch {
    struct wpk_cuda_part part[WPK_CUDA_PARTS_MAX];
    int part_count;
    struct wpk_cuda_share share[WPK_CUDA_SHARES_MAX];
    int share_count;
    int64_t blocks;
    int64_t threads;   /* the most that a definition has */
    int64_t surveyed;  /* the same, of the first pass */
    int repeats;       /* loops around that are not over blocks or threads */
    int threads_depth; /* loops over threads around */
    /* While what a loop computes ahead is printed, or read: how many buffers there are, and the
     * number of the one. 0: there are none. */
    int depth;
    struct wpk_form buffer;
    bool can_async;            /* the device has asynchronous copies */
    bool async;                /* what is printed are such copies */
    bool ahead;                /* some were printed */
    bool awaited;              /* and the next barrier waits for them */
    bool any_moves, any_ahead; /* moves, asynchronous ones: some were, in any launch */
    /* Blocks that share a tile's reduction, and tiles: blocks = parts * tiles. 0: none do */
    int64_t parts, tiles;
    int64_t part_bytes; /* of all parts */
    /* Of four neighbouring points: what they load, while that is noted; and what is loaded for them
     * already. Depth of their blocks in the text; 0: nothing is noted */
    struct wpk_cuda_fetch noted[WPK_CUDA_NOTED_MAX], fetched[WPK_CUDA_FETCHED_MAX];
    int noted_count, fetched_count, noting_depth;
    int64_t cells; /* variables that elements of tensors became */
    bool wrote;    /* shared memory was written */
    bool pending;  /* and no barrier followed */
};

/* The variable of a loop over threads.
 *   errors  0 and a refusal: there are too many */
int wpk_cuda_part(struct wpk_c_kernel *k, int64_t inside, int64_t count);

/* Make the launch have shared memory "sharedTENSOR" for so many elements of the tensor. */
void wpk_cuda_share(struct wpk_c_kernel *k, int tensor, int64_t elements);

/* True if WPK_CUDA_VECTOR elements of an f32 tensor in memory along `lanes`, from the one at
 * `index` on, lie together from a multiple of 16 bytes on; `at` is the first one's number.
 *   shape   index [rank] */
bool wpk_cuda_are_together(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                           int lanes, struct wpk_form *at);
/* True if element number `b` is `by` behind number `a`. */
bool wpk_cuda_are_apart(struct wpk_c_kernel *k, const struct wpk_form *a, const struct wpk_form *b,
                        int64_t by);
/* The tensor, an argument, begins at a multiple of 16 bytes if its memory does. */
bool wpk_cuda_is_even(const struct wpk_c_kernel *k, int tensor);

/* The move of elements from global to shared memory. */
struct wpk_cuda_move {
    int to, from; /* tensors */
    struct wpk_form to_at, from_at;
    int count;
    /* Unless each is in [first, last], zeros are stored. */
    struct wpk_cuda_limit {
        struct wpk_form index;
        int64_t first, last;
    } limit[WPK_CUDA_LIMITS_MAX];
    int limit_count;
};

/* Find the move of the element at `axis`, or of WPK_CUDA_VECTOR of them along `lanes` if that is no
 * -1. False: the stage does more than to move f32, or they are no neighbours that begin at a
 * multiple of 16 bytes. Print it: asynchronous in a loop that computes ahead. */
bool wpk_cuda_find_move(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                        const struct wpk_form *axis, int lanes, struct wpk_cuda_move *out);
void wpk_cuda_put_move(struct wpk_c_kernel *k, const struct wpk_cuda_move *move);

/* Print the launch of one definition of an entry before everything. */
void wpk_cuda_print_definition(struct wpk_c_kernel *k, int e, bool update,
                               const struct wpk_c_box *box);

struct wpk_cuda_definition;

/* Print how the threads that share the terms of an element join what they have: then each of them
 * has the total. */
void wpk_cuda_join_shares(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d);
/* The threads of the definition that have different elements; and print the number of a thread
 * among them. */
int64_t wpk_cuda_owners(const struct wpk_cuda_definition *d);
void wpk_cuda_put_owner(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d);
/* Print "if (a thread is one of the definition, and the first of those that share its terms) {". */
void wpk_cuda_open_first(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d);

/* Print how a tile's blocks leave their parts of a reduction's results, and how the last of them
 * goes on with the joined ones.
 *   errors  a refusal: memory for the parts would be too large */
void wpk_cuda_join_parts(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d);

/* Write what stands before the functions of a module. */
void wpk_cuda_put_prologue(const struct wpk_c_kernel *k, struct wpk_buf *out);

#endif
