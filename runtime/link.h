/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel's shared object is linked.
 *
 *     wpk_link_write_parts(directory)    stub.o, kernel.map
 *     the builder writes                 main.o, manifest and, if constants are prepared, prepare.o
 *     in directory: wpk_link_command     kernel.so
 *     wpk_seal_write("kernel.so")        without which libwpk does not load it
 *
 * The manifest's file name becomes part of its symbols; that is why all of them are fixed names in
 * one directory. Only the descriptor is exported, nothing but libc and libm stays undefined, and
 * what the descriptor does not reach is dropped. */
#ifndef WPK_RUNTIME_LINK_H
#define WPK_RUNTIME_LINK_H

#include "common/err.h"

/* Once per directory; it can then be linked in again and again, or its files be hard-linked.
 *   errors  as wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_link_write_parts(const char *directory, struct wpk_diag *diag);

/* Arguments for execvp, ending in NULL; static. To be run in the directory.
 *   prepare  is there a prepare.o? */
const char *const *wpk_link_command(bool prepare);

#endif
