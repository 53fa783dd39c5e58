/* SPDX-License-Identifier: Apache-2.0 */
/* A checksum at the end of a kernel's shared object.
 *
 * The system loads a damaged object without an error, and the program that uses it crashes later.
 * So a kernel is sealed after it is linked, and libwpk loads sealed objects only. The checksum
 * detects accidents. It is not a signature: anybody can seal a file. */
#ifndef WPK_RUNTIME_KERNEL_SEAL_H
#define WPK_RUNTIME_KERNEL_SEAL_H

#include "common/buf.h"

#define WPK_KERNEL_SIZE_MAX ((size_t)256 << 20) /* bytes of a shared object */

/* Append a mark and the file's SHA-256 to the file; leave a sealed file as it is.
 *   errors  WPK_ENOENT, WPK_EACCES, WPK_EIO, WPK_ENOSPC, WPK_ENOMEM; WPK_ERANGE larger than
 *           WPK_KERNEL_SIZE_MAX */
WPK_MUST_CHECK wpk_err wpk_seal_write(const char *path, struct wpk_diag *diag);

/* Read a sealed file and check it. `out` holds the bytes that were checked, seal included.
 *   owns    caller calls wpk_buf_fini; nothing to free after a failure
 *   errors  WPK_ECORRUPT not sealed, cut short, or changed; those of wpk_seal_write for reading */
WPK_MUST_CHECK wpk_err wpk_seal_read(const char *path, struct wpk_buf *out, struct wpk_diag *diag);

#endif
