/* SPDX-License-Identifier: Apache-2.0 */
/* What wpkd signed of a kernel, beside its shared object: PATH.manifest and PATH.sig, which libwpk
 * reads (runtime/wpk.h, wpk_kernel_open_with). */
#ifndef WPK_CLIENT_MANIFEST_FILE_H
#define WPK_CLIENT_MANIFEST_FILE_H

#include "client/session.h"
#include "common/crypto.h"

/* The key that the service signs with, in hexadecimal. */
WPK_MUST_CHECK wpk_err wpk_manifest_file_key(struct wpk_session *session,
                                             char out[WPK_SIGN_PUBLIC_HEX_SIZE],
                                             struct wpk_diag *diag);

/* Check what the service says of the object at `path`, whose SHA-256 is given, and write it beside
 * the object. Where there is nothing, what lay there before is removed: it was another object's.
 *
 *   errors  WPK_ECORRUPT  not signed by the service's key, or of another object: nothing is written
 *           of wpk_fs_write and wpk_session_ask */
WPK_MUST_CHECK wpk_err wpk_manifest_file_write(struct wpk_session *session,
                                               const struct wpk_api_kernel *kernel,
                                               const char *path, const char *sha256,
                                               struct wpk_diag *diag);

/* Is the text signed by the service's key?
 *   errors  WPK_ECORRUPT it is not; of wpk_session_ask */
WPK_MUST_CHECK wpk_err wpk_manifest_file_check(struct wpk_session *session, const char *text,
                                               const char *signature, struct wpk_diag *diag);

/* Write `text` and `end` to PATH and the suffix; an empty text removes what lies there.
 *   errors  WPK_ENOMEM; of wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_manifest_file_beside(const char *path, const char *suffix,
                                                const char *text, const char *end,
                                                struct wpk_diag *diag);

#endif
