/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a choice: PATH.choice and its signature PATH.choice.sig, which libwpk opens
 * (runtime/wpk.h, wpk_open), and beside them the shared objects that the choice names. */
#ifndef WPK_CLIENT_CHOICE_FILE_H
#define WPK_CLIENT_CHOICE_FILE_H

#include "client/session.h"
#include "common/crypto.h"
#include "schema/choice.h"

#define WPK_CHOICE_OBJECTS_MAX 2 /* the best generated kernel, and the plain kernel */

struct wpk_choice_object {
    char file[WPK_CHOICE_FILE_MAX]; /* name, in the choice's directory */
    char sha256[WPK_SHA256_HEX_SIZE];
};

struct wpk_choice_answer {
    struct wpk_buf choice; /* the file's bytes */
    char signature[WPK_SIGNATURE_HEX_SIZE];
    struct wpk_choice_object object[WPK_CHOICE_OBJECTS_MAX]; /* best first */
    int object_count;                                        /* 0: only the vendor's */
};

void wpk_choice_answer_fini(struct wpk_choice_answer *answer);

/* Ask wpkd for the choice of a kernel whose object will lie at `path`, and check its signature.
 *
 *   owns    caller calls wpk_choice_answer_fini, after failures too
 *   errors  WPK_ENOENT there is nothing to run; WPK_ECORRUPT not signed by the service's key;
 *           WPK_EINVAL a file name that a choice cannot hold; those of wpk_session_ask */
wpk_err wpk_choice_file_ask(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                            const char *path, struct wpk_choice_answer *out, struct wpk_diag *diag);

/* Write the choice, its signature and its objects. The caller writes the object at `path` itself.
 *   errors  WPK_ENOMEM; those of wpk_fs_write and wpk_choice_file_download */
wpk_err wpk_choice_file_write(struct wpk_session *session, const struct wpk_choice_answer *answer,
                              const char *path, struct wpk_diag *diag);

/* Download a shared object, append it to `out`, and check its hash.
 *   errors  WPK_ECORRUPT the bytes have another hash; those of wpk_session_ask; WPK_ENOMEM */
wpk_err wpk_choice_file_download(struct wpk_session *session, const char *sha256,
                                 struct wpk_buf *out, struct wpk_diag *diag);

/* The part of `path` behind the last slash. */
const char *wpk_choice_file_name(const char *path);

/* Writes a kernel's manifest and its signature beside the shared object: PATH.manifest and
 * PATH.sig, which libwpk reads (runtime/wpk.h, wpk_kernel_open). */

/* Ask for the public key that the service signs with, in hexadecimal.
 *   errors  those of wpk_session_ask and wpk_json_open */
wpk_err wpk_manifest_file_key(struct wpk_session *session, char out[WPK_SIGN_PUBLIC_HEX_SIZE],
                              struct wpk_diag *diag);

/* Check the kernel's manifest against the service's key and the object's SHA-256, and write it and
 * its signature beside the object at `path`. If the kernel has no manifest, older files there are
 * removed, because they belong to another object.
 *
 *   errors  WPK_ECORRUPT  not signed by the service's key, or of another object: nothing is
 *           written; those of wpk_fs_write and wpk_session_ask */
wpk_err wpk_manifest_file_write(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                                const char *path, const char *sha256, struct wpk_diag *diag);

/* Check that `text` is signed by the service's key.
 *   errors  WPK_ECORRUPT it is not; those of wpk_session_ask */
wpk_err wpk_manifest_file_check(struct wpk_session *session, const char *text,
                                const char *signature, struct wpk_diag *diag);

/* Write `text` followed by `end` to the file PATH + suffix. An empty text removes the file.
 *   errors  WPK_ENOMEM; those of wpk_fs_write */
wpk_err wpk_manifest_file_beside(const char *path, const char *suffix, const char *text,
                                 const char *end, struct wpk_diag *diag);

#endif
