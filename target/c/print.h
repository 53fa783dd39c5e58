/* SPDX-License-Identifier: Apache-2.0 */
/* The back end `c`: prints a schedule's nest as a kernel in C, for gcc or clang.
 *
 * The kernel is one translation unit without includes, in GNU C with vector extensions. It defines
 * the function that a kernel's shared object is linked from (runtime/stub.c), and calls the same
 * hooks as Halide's objects. */
#ifndef WPK_TARGET_C_PRINT_H
#define WPK_TARGET_C_PRINT_H

#include "nest/schedule.h"

#define WPK_C_FLAGS_MAX 40

struct wpk_instruction;

/* Write the kernel as the function SYMBOL_argv, with the arguments of target/halide/halide.h.
 *   errors  WPK_EUNSUPPORTED the nest cannot be printed, with the reason; WPK_ENOMEM */
wpk_err wpk_c_print(const struct wpk_schedule *schedule, const char *symbol, struct wpk_buf *out,
                    struct wpk_diag *diag);
/* True if wpk_c_print() prints the schedule; else the reason is in `diag`. */
bool wpk_c_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);

/* True if the back end has the instruction (target/c/dot.c). */
bool wpk_c_has_instruction(const struct wpk_instruction *instruction);

/* The CPU flags that the kernel needs: those for which it is compiled. */
wpk_cpu_flags wpk_c_needs(const struct wpk_schedule *schedule);
/* Fill `flags` with what a compiler needs to know of the schedule's target, then NULL. */
void wpk_c_flags(const struct wpk_schedule *schedule, const char *flags[WPK_C_FLAGS_MAX]);

#endif
