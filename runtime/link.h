/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that link a kernel's shared object:
 *
 *     wpk_link_write_parts(directory)    stub.o, kernel.map
 *     the builder writes                 main.o, manifest and, if constants are prepared, prepare.o
 *     in directory: wpk_link_command     kernel.so
 *     wpk_seal_write("kernel.so")        libwpk loads sealed objects only
 *
 * The linker makes symbols from the manifest's file name, so all files have fixed names in one
 * directory. Only the descriptor is exported. Nothing but libc and libm stays undefined. Code that
 * the descriptor does not reach is dropped. */
#ifndef WPK_RUNTIME_LINK_H
#define WPK_RUNTIME_LINK_H

#include "common/err.h"

/* Write the parts that are the same for every kernel. One call serves every later link in the
 * directory; other directories may hold hard links to the files.
 *   errors  as wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_link_write_parts(const char *directory, struct wpk_diag *diag);

/* The linker's arguments for execvp, static and NULL-terminated. Run it in the directory.
 *   prepare  true if there is a prepare.o */
const char *const *wpk_link_command(bool prepare);

#endif
