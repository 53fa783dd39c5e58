/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's C compiler, which compiles what the back end `c` prints. */
#ifndef WPK_TARGET_C_COMPILER_H
#define WPK_TARGET_C_COMPILER_H

#include "common/err.h"
#include "nest/schedule.h"

#define WPK_C_COMPILER_VERSION_MAX 28 /* with its NUL; longer ones are cut */

struct wpk_c_compiler {
    const char *command;
    const char *flag;                         /* besides those of wpk_c_flags(); NULL: none */
    char version[WPK_C_COMPILER_VERSION_MAX]; /* "gcc-12.2.0" */
};

/* gcc, or clang where there is no gcc. PATH is searched at a process's first call only, which has
 * to be made by its only thread.
 *   errors  WPK_ENOENT there is none; WPK_ESYSTEM no process can be started, and the next call
 *           searches again */
WPK_MUST_CHECK wpk_err wpk_c_compiler_find(struct wpk_c_compiler *out, struct wpk_diag *diag);

/* Run a program and wait for its end.
 *   shape   command: ends with NULL; directory: for its temporary files, which go with it if the
 *           program is killed, or NULL; output [size]: the beginning of what it prints, or NULL:
 *           the beginning of its messages goes to standard error
 *   errors  WPK_ENOENT there is no such program; WPK_ESYSTEM no process can be started;
 *           WPK_ENOSPC its messages say that the disk is full; WPK_EUNSUPPORTED it fails
 *           otherwise */
WPK_MUST_CHECK wpk_err wpk_c_compiler_run(const char *const *command, const char *directory,
                                          char *output, size_t size);

/* Compiling what the back end `c` prints. */

/* Print the schedule's kernel into the file OBJECT_PATH.c, and compile it by gcc, or by clang where
 * there is no gcc.
 *   errors  those of wpk_c_print; WPK_EUNSUPPORTED the compiler refuses the kernel, or there never
 *           was one; WPK_ENOENT it is gone, WPK_ESYSTEM it cannot be started, WPK_ENOSPC */
wpk_err wpk_c_build(const struct wpk_schedule *schedule, const char *symbol,
                    const char *object_path, struct wpk_diag *diag);

#endif
