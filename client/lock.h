/* SPDX-License-Identifier: Apache-2.0 */
/* Lock files: the implementation that each operator of a model has, as wpkd signed it.
 *
 *     {"version":1,"entries":[{"name":"...","kernel":"<id>","device":"cpu/...",
 *      "environment":"halide=21.0.0 ...","choice":"<the bytes of a choice>","signature":"..."}]}
 *
 * A choice (schema/choice.h) names the operator, its class, the files by their hashes, and a
 * library by its version. From it alone follows where an entry applies. */
#ifndef WPK_CLIENT_LOCK_H
#define WPK_CLIENT_LOCK_H

#include "client/session.h"
#include "common/crypto.h"
#include "schema/choice.h"
#include "schema/job.h"

struct wpk_lock_entry {
    char name[WPK_JOB_NAME_MAX]; /* of the operator in the model's job */
    char kernel[24];             /* id */
    char device[512];            /* class that the kernel was timed on */
    const char *environment;     /* texts live in the lock's arena */
    const char *choice;
    char signature[WPK_SIGNATURE_HEX_SIZE];
    /* out of the choice: */
    char fingerprint[WPK_ID_MAX];
    char artifact[WPK_ID_MAX]; /* of the kernel, or of the plain one; "": a library's alone */
    char layouts[WPK_CHOICE_TEXT_MAX];
    struct wpk_accuracy accuracy;
    int threads;
};

/* = {0} is empty. */
struct wpk_lock {
    struct wpk_arena arena;
    struct wpk_lock_entry *entries; /* [count] */
    int count;
};

/* Read a lock file.
 *   owns    caller calls wpk_lock_fini, after failures too
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE no lock file, with the field; WPK_EMISMATCH one of
 *           another version; those of wpk_fs_read and wpk_choice_decode */
wpk_err wpk_lock_read(const char *path, struct wpk_lock *out, struct wpk_diag *diag);
void wpk_lock_fini(struct wpk_lock *lock);

/* Append a lock file of these entries.   errors  WPK_ENOMEM */
wpk_err wpk_lock_print(const struct wpk_lock *lock, struct wpk_buf *out);

/* Take the operators of a job that have an entry out of it. `found`, which has room for all of
 * them, gets their kernels, under the names that the job has; *count says how many. An operator
 * whose entry is of another class of device, or whose kernel the service lacks, stays in the job,
 * and the user is told so unless `quiet`.
 *
 *   shape   device: the class that is tuned for, "": not known; job->ops is an array of the
 *           caller's, in which the operators that stay move up
 *   owns    texts of `found` live as long as the lock
 *   errors  those of wpk_session_ask and wpk_api_decode_kernels */
wpk_err wpk_lock_apply(struct wpk_lock *lock, struct wpk_session *session, const char *device,
                       struct wpk_job *job, bool quiet, struct wpk_api_kernel *found, int *count,
                       struct wpk_diag *diag);

#endif
