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
    const char *accuracy;        /* of schema/accuracy.h */
    const char *conditions;      /* of schema/record.h */
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

/* A job from a file, or, where `path` is NULL, from --op; with what options change in it.
 *   owns    caller calls wpk_job_fini */
WPK_MUST_CHECK wpk_err wpk_job_file_take(const char *path, const struct wpk_job_inline *given,
                                         const struct wpk_job_overrides *overrides,
                                         struct wpk_job *out, struct wpk_diag *diag);

/* The rows of what decides which kernel is best, for a command's options. */
#define WPK_JOB_CLASS_OPTION_ROWS(o)                                                               \
    WPK_ARGS_TEXT("accuracy", "strict|standard|fast",                                              \
                  "or times_direct=K: how accurate, for every operator", &(o).accuracy),           \
        WPK_ARGS_TEXT("conditions", "warm|cold-constants|cold",                                    \
                      "what the caches hold when a call begins, for every operator",               \
                      &(o).conditions)

/* The rows of everything that a job says; `g` is a struct wpk_job_inline. */
#define WPK_JOB_OPTION_ROWS(o, g)                                                                  \
    WPK_ARGS_INT("candidates", "N", "budget of each operator", &(o).candidates, 1,                 \
                 WPK_JOB_CANDIDATES_MAX),                                                          \
        WPK_ARGS_INT("seconds", "S", "of each operator, while it is worked on", &(o).seconds, 1,   \
                     WPK_JOB_SECONDS_MAX),                                                         \
        WPK_ARGS_TEXT("strategy", "NAME", "random or ga", &(o).strategy),                          \
        WPK_ARGS_U64("seed", "N", "of the search", &(o).seed),                                     \
        WPK_ARGS_INT("threads", "N", "of the kernels", &(o).threads, 1, WPK_JOB_THREADS_MAX),      \
        WPK_ARGS_TEXT("layouts", "fixed|any", "for every operator", &(o).layouts),                 \
        WPK_JOB_CLASS_OPTION_ROWS(o),                                                              \
        WPK_ARGS_LIST("pin", "GENE=VALUE", "fix a gene, e.g. algorithm=direct (repeatable)",       \
                      &(o).pins),                                                                  \
        WPK_ARGS_TEXT("op", "NOTATION", "of this instead of a file", &(g).op),                     \
        WPK_ARGS_LIST("tensor", "NAME=TYPE", "a tensor of --op, e.g. X=f32[1,64] (repeatable)",    \
                      &(g).tensors),                                                               \
        WPK_ARGS_LIST("constant", "NAME", "a tensor of --op that never changes (repeatable)",      \
                      &(g).constants)

#endif
