/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that link a kernel's shared object:
 *
 *     wpk_link_write_parts(directory)    stub.o, stub_image.o, kernel.map
 *     the builder writes                 main.o, manifest and prepare.o, if constants are prepared;
 *                                        for a GPU manifest, main.image and prepare.image
 *     in directory: wpk_link_command     kernel.so
 *     wpk_seal_write("kernel.so")        libwpk loads sealed objects only
 *
 * The linker makes symbols from the manifest's file name, so all files have fixed names in one
 * directory. Only the descriptor is exported. Only symbols of libc and libm stay undefined. Code
 * that the descriptor does not reach is dropped. */
#ifndef WPK_RUNTIME_LINK_H
#define WPK_RUNTIME_LINK_H

#include "common/err.h"

/* Write the parts that are the same for every kernel. One call serves every later link in the
 * directory; other directories may hold hard links to the files.
 *   errors  as wpk_fs_write */
wpk_err wpk_link_write_parts(const char *directory, struct wpk_diag *diag);

/* The files that are linked. */
enum wpk_link_kind {
    WPK_LINK_MAIN,         /* main.o */
    WPK_LINK_WITH_PREPARE, /* main.o, prepare.o */
    WPK_LINK_IMAGES,       /* main.image, prepare.image */
    WPK_LINK_KINDS,
};

/* Names of the files that have to lie in the directory, NULL-terminated, beside those that the
 * builder writes. */
const char *const *wpk_link_parts(enum wpk_link_kind kind);
/* The linker's arguments for execvp, static and NULL-terminated. Run it in the directory. */
const char *const *wpk_link_command(enum wpk_link_kind kind);

/* Write the object of runtime/tvm_ffi.c to `object`. Linked with
 *     --defsym=__tvm_ffi_NAME=wpk_tvm_ffi_run --defsym=__tvm_ffi_NAME_prepare=wpk_tvm_ffi_prepare
 * it is a library of functions of TVM's ABI.   errors  as wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_link_write_tvm_ffi(const char *object, struct wpk_diag *diag);

#endif
