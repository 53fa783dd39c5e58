/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a job that a user gives as a file, or as one operator on the command line, and applies the
 * options that override it. */
#ifndef WPK_CLIENT_JOB_FILE_H
#define WPK_CLIENT_JOB_FILE_H

#include "common/args.h"
#include "schema/job.h"
#include "search/space.h"

/* Options that override the file; a zero or NULL keeps the file's value. */
struct wpk_job_overrides {
    int64_t candidates;
    int64_t total;
    int64_t seconds;
    int64_t threads;
    const char *strategy;
    const char *until;
    const char *prior; /* a file */
    struct wpk_option_u64 seed;
    const char *layouts;
    const char *accuracy;           /* as schema/accuracy.h writes it */
    const char *conditions;         /* as schema/record.h writes them */
    struct wpk_option_list options; /* of the strategy: "name=value" */
    struct wpk_option_list pins;    /* "gene=value" */
};

/* One operator, given by options. */
struct wpk_job_inline {
    const char *op;                   /* notation; NULL: not given */
    struct wpk_option_list tensors;   /* "X=f32[1,64]" */
    struct wpk_option_list constants; /* names */
};

/* Read, decode and check a job file, operators included; "-" is standard input.
 *
 *   owns    caller calls wpk_job_fini
 *   errors  those of wpk_fs_read, wpk_job_decode and wpk_job_check; `diag` has the file's name. A
 *           missing file is WPK_EINVAL, because the input is wrong
 */
wpk_err wpk_job_file_read(const char *path, struct wpk_job *out, struct wpk_diag *diag);

/* Make the job of one operator, named "op".
 *   owns    caller calls wpk_job_fini
 *   errors  those of wpk_job_file_read; `diag` names --op as the file */
wpk_err wpk_job_file_make(const struct wpk_job_inline *given, struct wpk_job *out,
                          struct wpk_diag *diag);

/* Apply the overrides to a job.
 *   errors  WPK_EINVAL, WPK_ERANGE: `diag` names the option; WPK_ENOSPC, WPK_ENOMEM */
wpk_err wpk_job_file_override(const struct wpk_job_overrides *overrides, struct wpk_job *job,
                              struct wpk_diag *diag);

/* Read the class that the overrides ask for: accuracy and conditions; else `standard` and `warm`.
 *   errors  WPK_EINVAL, WPK_ERANGE: `diag` names the option */
wpk_err wpk_job_file_class(const struct wpk_job_overrides *overrides, struct wpk_accuracy *accuracy,
                           enum wpk_conditions *conditions, struct wpk_diag *diag);

/* Read the job from a file, or from --op if `path` is NULL, and apply the overrides.
 *   owns    caller calls wpk_job_fini
 *   errors  those of the three functions above */
wpk_err wpk_job_file_take(const char *path, const struct wpk_job_inline *given,
                          const struct wpk_job_overrides *overrides, struct wpk_job *out,
                          struct wpk_diag *diag);

/* Find the operator of that name in the job of a file; NULL: its only one.
 *   errors  WPK_EINVAL */
wpk_err wpk_job_file_op(const struct wpk_job *job, const char *name, int *out,
                        struct wpk_diag *diag);

/* Rows of a command's options: accuracy and conditions, which decide which kernel is best. */
#define WPK_JOB_CLASS_OPTION_ROWS(o)                                                               \
    WPK_ARGS_TEXT("accuracy", "strict|standard|fast",                                              \
                  "or times_direct=K: how accurate, for every operator", &(o).accuracy),           \
        WPK_ARGS_TEXT("conditions", "warm|cold-constants|cold",                                    \
                      "what the caches hold when a call begins, for every operator",               \
                      &(o).conditions)

/* Rows of a command's options: everything that a job says. `o` is a struct wpk_job_overrides, `g` a
 * struct wpk_job_inline. */
#define WPK_JOB_OPTION_ROWS(o, g)                                                                  \
    WPK_ARGS_INT("candidates", "N", "budget of each operator", &(o).candidates, 1,                 \
                 WPK_JOB_CANDIDATES_MAX),                                                          \
        WPK_ARGS_INT("total", "N", "candidates of all operators together, shared out", &(o).total, \
                     1, WPK_JOB_CANDIDATES_MAX),                                                   \
        WPK_ARGS_INT("seconds", "S", "of each operator, while it is worked on; of a whole model",  \
                     &(o).seconds, 1, WPK_JOB_SECONDS_MAX),                                        \
        WPK_ARGS_TEXT("until", "END", "converged, speedup=1.2 or of_peak=0.9: stop earlier",       \
                      &(o).until),                                                                 \
        WPK_ARGS_TEXT("strategy", "NAME", "of the search; wpkctl strategies lists them",           \
                      &(o).strategy),                                                              \
        WPK_ARGS_LIST("set", "OPTION=NUMBER", "an option of it, e.g. ga.crossover=0.4",            \
                      &(o).options),                                                               \
        WPK_ARGS_TEXT("prior", "FILE", "begin from what wpkctl learn found", &(o).prior),          \
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

/* Derives the space of a job's operator and checks the job's pins, before anything is started. */

/* Describe the device whose space the job's is: the class that its target names; else this machine,
 * or for GPUs the emulated one.
 *   errors  WPK_ESYSTEM */
wpk_err wpk_job_space_device(const struct wpk_job *job, struct wpk_device *out,
                             struct wpk_diag *diag);

/* Derive the space of an operator with the job's pins.
 *
 *   owns    caller calls wpk_space_fini
 *   errors  WPK_EINVAL  a pin names no gene, or no value of it: `diag` has the field
 *           search.pin.GENE and a suggestion; those of wpk_space_derive */
wpk_err wpk_job_space(const struct wpk_job *job, enum wpk_layouts layouts,
                      const struct wpk_program *program, const struct wpk_device *device,
                      struct wpk_space *out, struct wpk_diag *diag);

/* Check that each pin of the job is a gene of each of its operators on this machine.
 *   errors  those of wpk_job_space */
wpk_err wpk_job_space_check(const struct wpk_job *job, struct wpk_diag *diag);

#endif
