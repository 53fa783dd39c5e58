/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule's nest as Halide's calls: the ordered directives that halide.cc replays and
 * schedule_halide.c writes as C++. Every decision is the nest's.
 *
 * A directive names a stage of the main program; `update` is about its reduction, else the
 * directive is about the pure definition. Loops have the names of axes until they are split. Axis y
 * becomes y.B (blocks) and y.T (tiles) outside of the register tile, y.I within it, which its lanes
 * cut into y.U and y.V. No axis has a dot in its name. */
#ifndef WPK_TARGET_HALIDE_DIRECTIVE_H
#define WPK_TARGET_HALIDE_DIRECTIVE_H

#include "nest/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_LOOPS_MAX 32
#define WPK_LOOP_NAME_MAX (WPK_NAME_MAX + 2) /* an axis's name, a dot, a letter and a NUL */

/* suffix, Halide's word: operands */
#define WPK_DIRECTIVE_LIST(X)                                                                      \
    X(SPLIT, "split")         /* loop outer inner; factor, tail */                                 \
    X(FUSE, "fuse")           /* inner outer fused */                                              \
    X(REORDER, "reorder")     /* loops, innermost first */                                         \
    X(VECTORIZE, "vectorize") /* loop */                                                           \
    X(UNROLL, "unroll")       /* loop */                                                           \
    X(PARALLEL, "parallel")   /* loop */                                                           \
    X(GPU_BLOCKS, "gpu_blocks")                                                                    \
    X(GPU_THREADS, "gpu_threads")                                                                  \
    X(GPU_SINGLE_THREAD, "gpu_single_thread") /* no loops: around all of them */                   \
    X(ATOMIC, "atomic")                                                                            \
    X(COMPUTE_ROOT, "compute_root")                                                                \
    X(COMPUTE_AT, "compute_at")           /* stage loop */                                         \
    X(STORE_AT, "store_at")               /* stage loop */                                         \
    X(STORE_IN, "store_in")               /* memory */                                             \
    X(REORDER_STORAGE, "reorder_storage") /* axes, innermost first */                              \
    X(ALIGN_STORAGE, "align_storage")     /* axis; factor */                                       \
    X(BOUND_EXTENT, "bound_extent")       /* axis; factor */                                       \
    X(ALIGN_BOUNDS, "align_bounds")       /* axis; factor */                                       \
    X(NO_PARTITION, "partition")          /* loop */

#define WPK_DIRECTIVE_ENUM(name, text) WPK_DIRECTIVE_##name,
enum wpk_directive_kind { WPK_DIRECTIVE_LIST(WPK_DIRECTIVE_ENUM) WPK_DIRECTIVE_COUNT };

struct wpk_directive {
    enum wpk_directive_kind kind;
    int stage;   /* in the main program */
    bool update; /* the reduction's update, not its pure definition */
    char loop[WPK_LOOPS_MAX][WPK_LOOP_NAME_MAX]; /* [loop_count] loops, axes, or a stage's name */
    int loop_count;
    int64_t factor;
    enum wpk_tail tail;
};

/* = {0} is the empty list. */
struct wpk_directives {
    struct wpk_directive *item; /* owned; [count] */
    int count;
    int capacity;
};

void wpk_directives_fini(struct wpk_directives *directives);
/* Make the directives of a schedule that wpk_codegen_check() accepts.
 *   owns    caller calls wpk_directives_fini on what is filled */
void wpk_directives_make(const struct wpk_schedule *schedule, struct wpk_directives *out);
const char *wpk_directive_name(enum wpk_directive_kind kind);

#ifdef __cplusplus
}
#endif
#endif
