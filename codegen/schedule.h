/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule: a program and the ordered directives that say how to compute it on a target.
 *
 * The text of a schedule is all that the builder needs: a stored kernel can be rebuilt from it. Its
 * SHA-256 identifies a trial's kernel. It can be edited by hand (`wpkctl build`):
 *
 *     wpk-schedule 1
 *     target x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake threads 1
 *     layout X f32[1,16,14,14] 0,2,3,1 pad 0:0,0:0,1:1,1:1
 *     layout W f32[24,16,3,3] 0,1,2,3
 *     layout Y f32[1,24,14,14] 0,2,3,1
 *     program
 *     input X f32[1,14,14,16] pad 0:0,1:1,1:1,0:0
 *     ...
 *     Y[n,y,x,k] = max(T[n,y,x,k], 0)
 *     end
 *     Y split k k.T k.I 16 shift
 *     Y reorder k.I x k.T y n
 *     Y vectorize k.I
 *     T compute_at Y x
 *     T bound_extent k 16
 *     T vectorize k
 *     T.0 reorder k c s r
 *     T.0 vectorize k
 *
 * A layout line has a tensor of the operator with its type, in the operator's order of axes; the
 * kernel's order of these axes; and the padding of each axis (schema/tensor.h). A scalar has no
 * order. The program is in whole form (op/notation.h), with tensors in the kernel's order.
 *
 * A directive names a stage by its output tensor. With `.0` it is about the update of a reduction,
 * without about the pure definition. Loops are named like axes until they are split; the loops that
 * a split makes may have dots in their names, unlike axes. */
#ifndef WPK_CODEGEN_SCHEDULE_H
#define WPK_CODEGEN_SCHEDULE_H

#include "codegen/target.h"
#include "common/buf.h"
#include "op/nest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_DIRECTIVES_MAX 1024
#define WPK_LOOPS_MAX 32
#define WPK_LOOP_NAME_MAX (WPK_NAME_MAX + 2) /* an axis's name, a dot, a letter and a NUL */

/* suffix, text: operands */
#define WPK_DIRECTIVE_LIST(X)                                                                      \
    X(SPLIT, "split")         /* loop outer inner factor tail */                                   \
    X(FUSE, "fuse")           /* inner outer fused */                                              \
    X(REORDER, "reorder")     /* loops, innermost first */                                         \
    X(VECTORIZE, "vectorize") /* loop: its whole extent becomes lanes */                           \
    X(UNROLL, "unroll")       /* loop */                                                           \
    X(PARALLEL, "parallel")   /* loop */                                                           \
    X(ATOMIC, "atomic")       /* lets an associative update be vectorized over its reduction */    \
    X(EXPAND, "expand")       /* of a short sum: its terms, literals folded; no update */          \
    X(COMPUTE_ROOT, "compute_root")                                                                \
    X(COMPUTE_AT, "compute_at") /* consumer loop */                                                \
    X(COMPUTE_INLINE, "inline")                                                                    \
    X(STORE_IN, "store_in")               /* stack, heap or register */                            \
    X(REORDER_STORAGE, "reorder_storage") /* axes, innermost first */                              \
    X(ALIGN_STORAGE, "align_storage")     /* axis, factor */                                       \
    X(BOUND_EXTENT, "bound_extent")       /* axis, factor: the extent needed at its level */       \
    X(ALIGN_BOUNDS, "align_bounds")       /* axis, factor */                                       \
    X(NO_PARTITION, "no_partition")       /* loop: not split into prologue, body and epilogue */

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

/* An input, constant or output of the kernel. */
struct wpk_boundary {
    char name[WPK_NAME_MAX];     /* of the operator's tensor */
    struct wpk_tensor_type type; /* logical extents, with the kernel's layout */
};

/* = {0} is the empty schedule. Its nest points to `main`: a schedule is not copied. */
struct wpk_schedule {
    char target[WPK_TARGET_MAX]; /* target.h */
    int threads;
    struct wpk_boundary boundary[WPK_TENSORS_MAX]; /* inputs, constants and outputs */
    int boundary_count;
    struct wpk_program program; /* all stages, those of `prepare` included */
    struct wpk_program main;    /* has the prepared tensors as constants */
    struct wpk_program prepare; /* stage_count 0 when nothing is prepared */
    /* Owned; NULL in a schedule that was read from text. The nest of `main`: an entry a stage, the
     * last stage first. */
    struct wpk_nest *nest;
    struct wpk_directive *directives; /* owned; [directive_count] */
    int directive_count;
    int directive_capacity;
};

void wpk_schedule_fini(struct wpk_schedule *schedule);

/* Append a zeroed directive for `stage` of the main program and return it; NULL when
 * WPK_DIRECTIVES_MAX is reached or memory runs out. The next call may move it: fill it at once. */
struct wpk_directive *wpk_schedule_add(struct wpk_schedule *schedule, enum wpk_directive_kind kind,
                                       int stage, bool update);
/* Derive `main` and `prepare` from `program`.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_schedule_split(struct wpk_schedule *schedule);

const char *wpk_directive_name(enum wpk_directive_kind kind);
const char *wpk_tail_name(enum wpk_tail tail);
/* The stage of `program` that writes the tensor called `name`, or -1. */
int wpk_schedule_find_stage(const struct wpk_program *program, const char *name);
/* True if a directive expands this stage of the main program. */
bool wpk_schedule_expands(const struct wpk_schedule *schedule, const struct wpk_stage *stage);

/* Write a schedule as text, and read it back; parse(print(s)) equals s. Parsing also splits
 * `program` into main and prepare.
 *   owns    caller calls wpk_schedule_fini on what parse fills
 *   errors  WPK_EPARSE, WPK_ERANGE with line and column; WPK_ENOMEM */
wpk_err wpk_schedule_print(const struct wpk_schedule *schedule, struct wpk_buf *out);
wpk_err wpk_schedule_parse(const char *text, struct wpk_schedule *out, struct wpk_diag *diag);

/* Write the schedule as Halide C++ for people, as `wpkctl get --halide` does from stored text. */
wpk_err wpk_schedule_print_halide(const struct wpk_schedule *schedule, struct wpk_buf *out);

/* Check every directive against a model of each stage's loop nest, before anything is compiled:
 * loops exist, nothing is split after it was vectorized or unrolled, no serial loop stands inside
 * an unrolled one, factors divide where the tail says exact, unrolled statements stay bounded.
 *   errors  WPK_EINVAL with the directive at fault */
wpk_err wpk_schedule_check(const struct wpk_schedule *schedule, struct wpk_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
