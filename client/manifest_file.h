/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a kernel's manifest and its signature beside the shared object: PATH.manifest and
 * PATH.sig, which libwpk reads (runtime/wpk.h, wpk_kernel_open). */
#ifndef WPK_CLIENT_MANIFEST_FILE_H
#define WPK_CLIENT_MANIFEST_FILE_H

#include "client/session.h"
#include "common/crypto.h"

/* Ask for the public key that the service signs with, in hexadecimal.
 *   errors  those of wpk_session_ask and wpk_json_open */
WPK_MUST_CHECK wpk_err wpk_manifest_file_key(struct wpk_session *session,
                                             char out[WPK_SIGN_PUBLIC_HEX_SIZE],
                                             struct wpk_diag *diag);

/* Check the kernel's manifest against the service's key and the object's SHA-256, and write it and
 * its signature beside the object at `path`. If the kernel has no manifest, older files there are
 * removed, because they belong to another object.
 *
 *   errors  WPK_ECORRUPT  not signed by the service's key, or of another object: nothing is
 *           written; those of wpk_fs_write and wpk_session_ask */
WPK_MUST_CHECK wpk_err wpk_manifest_file_write(struct wpk_session *session,
                                               const struct wpk_api_kernel *kernel,
                                               const char *path, const char *sha256,
                                               struct wpk_diag *diag);

/* Check that `text` is signed by the service's key.
 *   errors  WPK_ECORRUPT it is not; those of wpk_session_ask */
WPK_MUST_CHECK wpk_err wpk_manifest_file_check(struct wpk_session *session, const char *text,
                                               const char *signature, struct wpk_diag *diag);

/* Write `text` followed by `end` to the file PATH + suffix. An empty text removes the file.
 *   errors  WPK_ENOMEM; those of wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_manifest_file_beside(const char *path, const char *suffix,
                                                const char *text, const char *end,
                                                struct wpk_diag *diag);

#endif
