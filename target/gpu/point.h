/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost of a launch: the elements of a definition, behind the guards of their axes. */
#ifndef WPK_TARGET_GPU_POINT_H
#define WPK_TARGET_GPU_POINT_H

#include "target/gpu/kernel.h"

#define WPK_CUDA_GUARDS_MAX 8

/* Only points before the end of the axis are computed. */
struct wpk_cuda_guard {
    int axis;
    struct wpk_form end;
};

/* An iteration of the loops around a definition: each axis is at [at, at + span). */
struct wpk_cuda_iteration {
    struct wpk_form at[WPK_AXES_MAX];
    int64_t span[WPK_AXES_MAX];
    struct wpk_cuda_guard guard[WPK_CUDA_GUARDS_MAX];
    int guard_count;
};

struct wpk_cuda_definition {
    int entry;
    bool update;
    const struct wpk_stage *stage;
    struct wpk_nest_loop loop[WPK_C_LOOPS_MAX]; /* those of axes without loops come first */
    int count;
    int added;                       /* loops before the nest's own */
    int64_t most[WPK_C_LOOPS_MAX];   /* iterations of a loop over blocks or threads */
    int64_t inside[WPK_C_LOOPS_MAX]; /* of such loops further in, their product */
    int64_t threads;                 /* all of its loops over threads */
    int64_t width;                   /* threads along x that all run it; 1: it has thread.x */
    bool shares;                     /* threads share the terms of its reduction */
    bool own;                        /* each thread has its elements for itself */
    bool single;                     /* one thread writes for all */
    bool hosts[WPK_C_LOOPS_MAX];     /* entries are computed inside it */
};

/* Begin a definition of an entry: its loops, and what they host; the counts below follow later. */
void wpk_cuda_begin_definition(struct wpk_c_kernel *k, int e, bool update,
                               struct wpk_cuda_definition *d);
/* Count the iterations of loops over blocks and threads; later loops vary faster.
 *   shape  size [axis_count] of what is computed */
void wpk_cuda_count_parallel(struct wpk_cuda_definition *d, const int64_t *size, int64_t *blocks);
/* True if it has a loop with a binding from `first` to `last`. */
bool wpk_cuda_has_thread_loop(const struct wpk_cuda_definition *d, enum wpk_loop_binding first,
                              enum wpk_loop_binding last);
/* True if its outermost loop deals out the terms of a reduction to blocks. */
bool wpk_cuda_has_parts(const struct wpk_cuda_definition *d);
/* True if the entry is computed in loop `i` of the definition. */
bool wpk_cuda_is_placed(const struct wpk_nest_entry *entry, const struct wpk_cuda_definition *d,
                        int i);

/* Print a barrier of the block's threads: what was written to shared memory is there then. */
void wpk_cuda_put_barrier(struct wpk_c_kernel *k);

/* Print one element: its value, or while the launch is asynchronous its copy.
 *   errors  a refusal: it cannot be copied so */
void wpk_cuda_print_point(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                          const struct wpk_cuda_iteration *space);

/* Print the elements along the axis of loop `i`, moved or stored together if they can be. */
void wpk_cuda_print_lanes(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int i,
                          const struct wpk_cuda_iteration *space);

/* Load what four neighbours along an axis read, where that is four neighbours: until the end it is
 * read from there.   shape  at [axis_count], of the first */
void wpk_cuda_begin_fetch(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int axis,
                          const struct wpk_form *at);
#endif
