/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to run for a kernel's operator, as wpkd chose and signed it: PATH.choice and
 * PATH.choice.sig, which libwpk opens (runtime/wpk.h, wpk_open). */
#ifndef WPK_CLIENT_CHOICE_FILE_H
#define WPK_CLIENT_CHOICE_FILE_H

#include "client/session.h"
#include "common/crypto.h"

struct wpk_choice_answer {
    struct wpk_buf choice; /* the file's bytes */
    char signature[WPK_SIGNATURE_HEX_SIZE];
    char sha256[WPK_SHA256_HEX_SIZE]; /* of our own object; "": the vendor's alone is there */
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

/*   errors  WPK_ENOMEM; of wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_choice_file_write(const struct wpk_choice_answer *answer,
                                             const char *path, struct wpk_diag *diag);

#endif
