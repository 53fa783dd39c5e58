/* SPDX-License-Identifier: Apache-2.0 */
/* Who vouches for a kernel's file: the manifest and the signature that lie beside it. */
#ifndef WPK_RUNTIME_TRUST_H
#define WPK_RUNTIME_TRUST_H

#include "common/buf.h"
#include "schema/kernel_manifest.h"

#define WPK_TRUST_MANIFEST ".manifest" /* behind the object's path */
#define WPK_TRUST_SIGNATURE ".sig"     /* 128 hexadecimal digits and a newline */

/* Is `object`, read from `path`, what its manifest names, and the manifest signed by the owner of
 * `public_key`? Without a key, which may be NULL, nothing has to lie beside the object; a manifest
 * that does must name it.
 *
 *   shape   manifest: filled when *found
 *   errors  WPK_ECORRUPT, WPK_EACCES, WPK_EINVAL: see wpk_kernel_open_with; WPK_EMISMATCH a
 *           manifest of a later version; WPK_ENOMEM, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_trust_check(const char *path, const char *public_key,
                                       const struct wpk_buf *object,
                                       struct wpk_kernel_manifest *manifest, bool *found,
                                       struct wpk_diag *diag);

/* Is `text` signed by the owner of `public_key`? The signature is in PATH.sig.
 *
 *   shape   what: behind PATH, the name of what was signed
 *   errors  WPK_EACCES it is not; WPK_EINVAL no public key; WPK_ENOMEM, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_trust_signed(const char *path, const char *what, const char *public_key,
                                        const struct wpk_buf *text, struct wpk_diag *diag);

/* Put these bytes where nobody can change them, and where dlopen finds them.
 *
 *   shape   *fd, path [WPK_TRUST_PATH_MAX]: good until *fd is closed, not before dlclose
 *   errors  WPK_ESYSTEM, WPK_ENOMEM */
#define WPK_TRUST_PATH_MAX 32
WPK_MUST_CHECK wpk_err wpk_trust_freeze(const struct wpk_buf *object, int *fd, char *path,
                                        struct wpk_diag *diag);

#endif
