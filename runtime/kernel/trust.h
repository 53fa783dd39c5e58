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
WPK_MUST_CHECK wpk_err wpk_trust_check(const char *path, const char *public_key,
                                       const struct wpk_buf *object,
                                       struct wpk_kernel_manifest *manifest, bool *found,
                                       struct wpk_diag *diag);

/* Check the signature of `text` in PATH.sig against `public_key`.
 *
 *   shape   what: suffix of PATH that names the signed file in `diag`
 *   errors  WPK_EACCES missing or wrong signature; WPK_EINVAL `public_key` is malformed;
 *           WPK_ENOMEM; WPK_EIO, WPK_ESYSTEM reading */
WPK_MUST_CHECK wpk_err wpk_trust_signed(const char *path, const char *what, const char *public_key,
                                        const struct wpk_buf *text, struct wpk_diag *diag);

/* Copy the object into memory that cannot be changed, under a path for dlopen.
 *
 *   shape   path [WPK_TRUST_PATH_MAX]: valid until *fd is closed
 *   owns    caller closes *fd, after dlclose
 *   errors  WPK_ESYSTEM, WPK_ENOMEM */
#define WPK_TRUST_PATH_MAX 32
WPK_MUST_CHECK wpk_err wpk_trust_freeze(const struct wpk_buf *object, int *fd, char *path,
                                        struct wpk_diag *diag);

#endif
