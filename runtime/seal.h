/* SPDX-License-Identifier: Apache-2.0 */
/* A checksum at the end of a kernel's shared object.
 *
 * The system maps a damaged object without a word, and it crashes later, in the middle of its
 * user. So whoever links a kernel seals it, and libwpk loads sealed objects only. It is no
 * signature: it tells accidents from good files, not friends from enemies. */
#ifndef WPK_RUNTIME_SEAL_H
#define WPK_RUNTIME_SEAL_H

#include "common/buf.h"

#define WPK_KERNEL_SIZE_MAX ((size_t)256 << 20) /* bytes of a shared object */

/* Append SHA-256 of the file to the file; a sealed file is left as it is.
 *   errors  WPK_ENOENT, WPK_EACCES, WPK_EIO, WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_seal_write(const char *path, struct wpk_diag *diag);

/* Read a sealed file: the bytes that were checked, seal included.
 *   errors  WPK_ECORRUPT not sealed, cut short, or changed; WPK_ENOENT, WPK_EACCES, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_seal_read(const char *path, struct wpk_buf *out, struct wpk_diag *diag);

#endif
