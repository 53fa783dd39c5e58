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
WPK_MUST_CHECK wpk_err wpk_choice_file_ask(struct wpk_session *session,
                                           const struct wpk_api_kernel *kernel, const char *path,
                                           struct wpk_choice_answer *out, struct wpk_diag *diag);

/* Write the choice, its signature and its objects. The caller writes the object at `path` itself.
 *   errors  WPK_ENOMEM; those of wpk_fs_write and wpk_choice_file_download */
WPK_MUST_CHECK wpk_err wpk_choice_file_write(struct wpk_session *session,
                                             const struct wpk_choice_answer *answer,
                                             const char *path, struct wpk_diag *diag);

/* Download a shared object, append it to `out`, and check its hash.
 *   errors  WPK_ECORRUPT the bytes have another hash; those of wpk_session_ask; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_choice_file_download(struct wpk_session *session, const char *sha256,
                                                struct wpk_buf *out, struct wpk_diag *diag);

/* The part of `path` behind the last slash. */
const char *wpk_choice_file_name(const char *path);

#endif
