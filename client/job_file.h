/* SPDX-License-Identifier: Apache-2.0 */
/* A job as the user gives it: a file, or one operator on the command line; and what options change
 * in it. */
#ifndef WPK_CLIENT_JOB_FILE_H
#define WPK_CLIENT_JOB_FILE_H

#include "client/args.h"
#include "schema/job.h"

/* Options that override what the file says; a zero or NULL leaves it as it is. */
struct wpk_job_overrides {
    int64_t candidates;
    int64_t seconds;
    int64_t threads;
    const char *strategy;
    struct wpk_option_u64 seed;
    const char *layouts;
    struct wpk_option_list pins; /* "gene=value" */
};

/* One operator given by options. */
struct wpk_job_inline {
    const char *op;                   /* notation; NULL: there is none */
    struct wpk_option_list tensors;   /* "X=f32[1,64]" */
    struct wpk_option_list constants; /* names */
};

/* Read, decode and check a job file, operators included; "-" is standard input.
 *
 *   owns    caller calls wpk_job_fini
 *   errors  of wpk_fs_read, wpk_job_decode and wpk_job_check, with the file's name; a missing file
 *           is WPK_EINVAL: it is the input that is wrong
 */
WPK_MUST_CHECK wpk_err wpk_job_file_read(const char *path, struct wpk_job *out,
                                         struct wpk_diag *diag);

/* The job of one operator, named "op".   errors  as above, the "file" is --op */
WPK_MUST_CHECK wpk_err wpk_job_file_make(const struct wpk_job_inline *given, struct wpk_job *out,
                                         struct wpk_diag *diag);

/*   errors  WPK_EINVAL, WPK_ERANGE with the option at fault; WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_job_file_override(const struct wpk_job_overrides *overrides,
                                             struct wpk_job *job, struct wpk_diag *diag);

#endif
