/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling what the back end `c` prints. */
#ifndef WPK_TARGET_C_BUILD_H
#define WPK_TARGET_C_BUILD_H

#include "nest/schedule.h"

/* Print the schedule's kernel into the file OBJECT_PATH.c, and compile it by gcc, or by clang where
 * there is no gcc.
 *   errors  those of wpk_c_print; WPK_EUNSUPPORTED the compiler refuses the kernel, or there never
 *           was one; WPK_ENOENT it is gone, WPK_ESYSTEM it cannot be started, WPK_ENOSPC */
wpk_err wpk_c_build(const struct wpk_schedule *schedule, const char *symbol,
                    const char *object_path, struct wpk_diag *diag);

#endif
