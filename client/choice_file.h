/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to run for a kernel's operator, as wpkd chose and signed it: PATH.choice and
 * PATH.choice.sig, which libwpk opens (runtime/wpk.h, wpk_open), and the shared objects that it
 * names, beside it. */
#ifndef WPK_CLIENT_CHOICE_FILE_H
#define WPK_CLIENT_CHOICE_FILE_H

#include "client/session.h"
#include "common/crypto.h"
#include "schema/choice.h"

#define WPK_CHOICE_OBJECTS_MAX 2 /* the best of our own, and the plain kernel */

struct wpk_choice_object {
    char file[WPK_CHOICE_FILE_MAX]; /* its name, beside the choice */
    char sha256[WPK_SHA256_HEX_SIZE];
};

struct wpk_choice_answer {
    struct wpk_buf choice; /* the file's bytes */
    char signature[WPK_SIGNATURE_HEX_SIZE];
    struct wpk_choice_object object[WPK_CHOICE_OBJECTS_MAX]; /* best first */
    int object_count;                                        /* 0: the vendor's alone is there */
};

void wpk_choice_answer_fini(struct wpk_choice_answer *answer);

/* Ask for the choice of the kernel whose object will lie at `path`, and check its signature.
 *
 *   owns    caller calls wpk_choice_answer_fini, after failures too
 *   errors  WPK_ENOENT there is nothing to run; WPK_ECORRUPT not signed by the service's key;
 *           WPK_EINVAL a file's name that no choice takes; of wpk_session_ask */
WPK_MUST_CHECK wpk_err wpk_choice_file_ask(struct wpk_session *session,
                                           const struct wpk_api_kernel *kernel, const char *path,
                                           struct wpk_choice_answer *out, struct wpk_diag *diag);

/* Write the choice, its signature and every object but one at `path` itself: that is the caller's.
 *   errors  WPK_ENOMEM; of wpk_fs_write and wpk_choice_file_download */
WPK_MUST_CHECK wpk_err wpk_choice_file_write(struct wpk_session *session,
                                             const struct wpk_choice_answer *answer,
                                             const char *path, struct wpk_diag *diag);

/* Download a shared object; what comes is what the hash names.
 *   errors  WPK_ECORRUPT it is not; of wpk_session_ask */
WPK_MUST_CHECK wpk_err wpk_choice_file_download(struct wpk_session *session, const char *sha256,
                                                struct wpk_buf *out, struct wpk_diag *diag);

/* What of a path names the file. */
const char *wpk_choice_file_name(const char *path);

#endif
