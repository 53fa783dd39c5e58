/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a kernel's file is the one that wpkd recorded: its manifest and signature lie beside
 * it. */
#ifndef WPK_RUNTIME_KERNEL_TRUST_H
#define WPK_RUNTIME_KERNEL_TRUST_H

#include "common/buf.h"
#include "schema/kernel_manifest.h"

#define WPK_TRUST_MANIFEST ".manifest" /* suffix of the object's path */
#define WPK_TRUST_SIGNATURE ".sig"     /* 128 hexadecimal digits and a newline */

/* Check that the manifest beside `path` names `object`, which was read from `path`, and that the
 * manifest is signed with `public_key`. If the key is NULL, the signature is not checked and the
 * manifest may be missing.
 *
 *   shape   manifest: filled if *found
 *   errors  WPK_ECORRUPT, WPK_EACCES, WPK_EINVAL: see wpk_kernel_open; WPK_EMISMATCH a
 *           manifest of a later version; WPK_ENOMEM; WPK_EIO, WPK_ESYSTEM reading */
wpk_err wpk_trust_check(const char *path, const char *public_key, const struct wpk_buf *object,
                        struct wpk_kernel_manifest *manifest, bool *found, struct wpk_diag *diag);

/* Check the signature of `text` in PATH.sig against `public_key`.
 *
 *   shape   what: suffix of PATH that names the signed file in `diag`
 *   errors  WPK_EACCES missing or wrong signature; WPK_EINVAL `public_key` is malformed;
 *           WPK_ENOMEM; WPK_EIO, WPK_ESYSTEM reading */
wpk_err wpk_trust_signed(const char *path, const char *what, const char *public_key,
                         const struct wpk_buf *text, struct wpk_diag *diag);

/* Copy the object into memory that cannot be changed, under a path for dlopen.
 *
 *   shape   path [WPK_TRUST_PATH_MAX]: valid until *fd is closed
 *   owns    caller closes *fd, after dlclose
 *   errors  WPK_ESYSTEM, WPK_ENOMEM */
#define WPK_TRUST_PATH_MAX 32
wpk_err wpk_trust_freeze(const struct wpk_buf *object, int *fd, char *path, struct wpk_diag *diag);

/* A checksum at the end of a kernel's shared object.
 *
 * The system loads a damaged object without an error, and the program that uses it crashes later.
 * So a kernel is sealed after it is linked, and libwpk loads sealed objects only. The checksum
 * detects accidents. It is not a signature: anybody can seal a file. */

#define WPK_KERNEL_SIZE_MAX ((size_t)256 << 20) /* bytes of a shared object */

/* Append a mark and the file's SHA-256 to the file; leave a sealed file as it is.
 *   errors  WPK_ENOENT, WPK_EACCES, WPK_EIO, WPK_ENOSPC, WPK_ENOMEM; WPK_ERANGE larger than
 *           WPK_KERNEL_SIZE_MAX */
wpk_err wpk_seal_write(const char *path, struct wpk_diag *diag);

/* Read a sealed file and check it. `out` holds the bytes that were checked, seal included.
 *   owns    caller calls wpk_buf_fini; nothing to free after a failure
 *   errors  WPK_ECORRUPT not sealed, cut short, or changed; those of wpk_seal_write for reading */
wpk_err wpk_seal_read(const char *path, struct wpk_buf *out, struct wpk_diag *diag);

#endif
