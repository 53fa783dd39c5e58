/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule: a program, and the nest that says how to compute it on a target.
 *
 * The text of a schedule is all that the builder needs: a stored kernel can be rebuilt from it. The
 * SHA-256 of the text identifies a trial's kernel. It can be edited by hand (`wpkctl build`):
 *
 *     wpk-schedule 2
 *     target x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake threads 1
 *     by halide-cpu
 *     layout X f32[1,16,14,14] 0,2,3,1 pad 0:0,0:0,1:1,1:1
 *     layout W f32[24,16,3,3] 0,1,2,3
 *     layout Y f32[1,24,14,14] 0,2,3,1
 *     program
 *     input X f32[1,14,14,16] pad 0:0,1:1,1:1,0:0
 *     ...
 *     Y[n,y,x,k] = max(T[n,y,x,k], 0)
 *     end
 *     stage Y root
 *       serial y
 *       ...
 *
 * A layout line has a tensor of the operator with its type, in the operator's order of axes; the
 * kernel's order of these axes; and the padding of each axis (schema/tensor.h). A scalar has no
 * order. The program is in whole form (ir/notation/notation.h), with tensors in the kernel's order.
 * The rest is the nest of the main program (nest_text.h). */
#ifndef WPK_NEST_SCHEDULE_H
#define WPK_NEST_SCHEDULE_H

#include "common/buf.h"
#include "nest/nest.h"
#include "nest/target.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_CODEGEN_NAME_MAX 32

/* An input, constant or output of the kernel. */
struct wpk_boundary {
    char name[WPK_NAME_MAX];     /* of the operator's tensor */
    struct wpk_tensor_type type; /* logical extents, with the kernel's layout */
};

/* = {0} is the empty schedule. The nest points to `main`: a schedule is not copied. */
struct wpk_schedule {
    char target[WPK_TARGET_MAX]; /* target.h */
    int threads;
    char by[WPK_CODEGEN_NAME_MAX];                 /* the back end (codegen.h) */
    struct wpk_boundary boundary[WPK_TENSORS_MAX]; /* inputs, constants and outputs */
    int boundary_count;
    struct wpk_program program; /* all stages, those of `prepare` included */
    struct wpk_program main;    /* has the prepared tensors as constants */
    struct wpk_program prepare; /* stage_count 0 when nothing is prepared */
    struct wpk_nest *nest;      /* owned; of `main`: an entry a stage, the last stage first */
};

void wpk_schedule_fini(struct wpk_schedule *schedule);

/* Add the empty nest of the main program.   errors  WPK_ENOMEM */
wpk_err wpk_schedule_add_nest(struct wpk_schedule *schedule);
/* Derive `main` and `prepare` from `program`.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_schedule_split(struct wpk_schedule *schedule);

/* True if the nest expands this stage of the main program. */
bool wpk_schedule_expands(const struct wpk_schedule *schedule, const struct wpk_stage *stage);

/* Fill `out` with the program that a back end prints: `main` in primitive operations
 * (nest/expand.h), with the sums that the nest expands as expressions. wpk_schedule_check() accepts
 * the schedule.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM; WPK_ERANGE more than WPK_EXPANDED_NODES_MAX nodes */
wpk_err wpk_schedule_expand(const struct wpk_schedule *schedule, struct wpk_program *out);

/* Write a schedule as text, and read it back; parse(print(s)) equals s. Parsing also splits
 * `program` into main and prepare. Texts of version 1, which had directives, are not read.
 *   owns    caller calls wpk_schedule_fini on what parse fills
 *   errors  WPK_EPARSE, WPK_ERANGE with line and column; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_schedule_print(const struct wpk_schedule *schedule, struct wpk_buf *out);
wpk_err wpk_schedule_parse(const char *text, struct wpk_schedule *out, struct wpk_diag *diag);

/* Write the schedule as Halide C++ for people, as `wpkctl get --halide` does from stored text. */
wpk_err wpk_schedule_print_halide(const struct wpk_schedule *schedule, struct wpk_buf *out);

#ifdef __cplusplus
}
#endif

/* The schedule of a kernel's prepare program, which packs and transforms its constants once. */

/* Schedule the prepare program of `schedule`, which must have stages, as the main program of `out`.
 * Each stage has one axis in lanes, and is computed as far inside its readers' loops as is possible
 * without computing a value twice.
 *   owns    caller calls wpk_schedule_fini
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_prepare_schedule(const struct wpk_schedule *schedule, struct wpk_schedule *out);

#endif
