/* SPDX-License-Identifier: Apache-2.0 */
/* Halide behind a C interface: replays a schedule and writes an object file. It makes no decision
 * of its own, and no exception leaves it.
 *
 * The functions lie in a library that wpk-builder loads when it is asked for Halide: load.c has the
 * three of its table by their names. Tests link them. */
#ifndef WPK_TARGET_HALIDE_HALIDE_H
#define WPK_TARGET_HALIDE_HALIDE_H

#include "nest/schedule.h"
#include "schema/launch_plan.h"

#define WPK_HALIDE_LIBRARY "libwpk-halide.so"
#define WPK_HALIDE_PATH_MAX 4096

#ifdef __cplusplus
extern "C" {
#endif

/* Find the library: beside the program, or where it is installed. Print its path.
 *   errors  WPK_ENOENT there is none, with the reason */
wpk_err wpk_halide_find(char out[WPK_HALIDE_PATH_MAX], struct wpk_diag *diag);

/* The library's table, its one symbol: the functions below. */
struct wpk_halide_functions {
    wpk_err (*warm)(const char *target, struct wpk_diag *diag);
    wpk_err (*build)(const struct wpk_schedule *schedule, const char *symbol,
                     const char *object_path, struct wpk_diag *diag);
    wpk_err (*launches)(const struct wpk_schedule *schedule, const char *symbol,
                        struct wpk_launch_plan *plan, struct wpk_buf *ptx, struct wpk_diag *diag);
};

extern const struct wpk_halide_functions wpk_halide_functions;

/* Compile a small function once, so that children forked afterwards compile faster.
 *   errors  WPK_EUNSUPPORTED with Halide's message, or why there is no Halide; so below */
wpk_err wpk_halide_warm(const char *target, struct wpk_diag *diag);

/* Compile the schedule's main program to the function `symbol` in the object file `object_path`,
 *
 *   shape   arguments of the function, in order: inputs, constants and prepared tensors, then
 *           outputs, each in the order of the main program's tensors
 *   errors  WPK_EUNSUPPORTED with Halide's message: it rejects a directive or an expression
 */
wpk_err wpk_halide_build(const struct wpk_schedule *schedule, const char *symbol,
                         const char *object_path, struct wpk_diag *diag);
/* Write the function's LLVM text to `path`.
 *   errors  as above */
wpk_err wpk_halide_print_llvm(const struct wpk_schedule *schedule, const char *symbol,
                              const char *path, struct wpk_diag *diag);

/* Compile the main program of a schedule for a GPU: fill the plan of its launches, and append its
 * kernels as PTX, functions SYMBOL_0, SYMBOL_1, ... The host's code is not compiled.
 *
 *   shape   arguments as above
 *   errors  as above; WPK_ENOMEM */
wpk_err wpk_halide_launches(const struct wpk_schedule *schedule, const char *symbol,
                            struct wpk_launch_plan *plan, struct wpk_buf *ptx,
                            struct wpk_diag *diag);

/* Write the loops and allocations that Halide makes of the main program to `path`, as text.
 *   errors  as above */
wpk_err wpk_halide_lower(const struct wpk_schedule *schedule, const char *path,
                         struct wpk_diag *diag);

#ifdef __cplusplus
}
#endif

/* Which nests Halide's back ends compile. */

/* True if `halide-cpu` compiles the schedule, whose nest is valid; else `diag` has the position of
 * the loop or stage that it does not, and what to write instead. */
bool wpk_halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);
/* The same of `halide-cuda`. */
bool wpk_halide_cuda_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);
/* True if the loops of an entry that are unrolled or in lanes have as many iterations in each
 * iteration of the loops around its place: Halide's are numbers. */
bool wpk_halide_is_cut(const struct wpk_nest *nest, const struct wpk_nest_entry *entry);

/* Building by the back end `halide-cuda`: the nest of a GPU's schedule, replayed on Halide. */

/* Compile the main program of a schedule that is accepted (target/halide/halide.h) for the
 * architecture that its target names: fill the plan of its launches, and append its kernels as PTX,
 * functions SYMBOL_0, SYMBOL_1, ...
 *
 *   errors  WPK_EUNSUPPORTED with the reason: what target/gpu/print.h refuses, this does;
 *   WPK_ENOMEM */
wpk_err wpk_halide_cuda_compile(const struct wpk_schedule *schedule, const char *symbol,
                                struct wpk_launch_plan *plan, struct wpk_buf *ptx,
                                struct wpk_diag *diag);
/* The same as an image (schema/launch_plan.h), which is written to `path`, with machine code by
 * ptxas where there is one (target/gpu/build.h): else a driver has to compile the PTX.
 *   errors  those of wpk_fs_write, too */
wpk_err wpk_halide_cuda_build(const struct wpk_schedule *schedule, const char *symbol,
                              const char *path, struct wpk_diag *diag);

#endif
