/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of wpk-worker: from its command line, and from a file whose members are named like
 * the options, with '_' for '-'. The command line overrides the file. */
#ifndef WPK_WORKER_SESSION_ARGUMENTS_H
#define WPK_WORKER_SESSION_ARGUMENTS_H

#include "common/arena.h"
#include "common/log.h"
#include "schema/message.h"

#include <stdio.h>

#define WPK_RUN_TIMEOUT_S_MAX 3600
#define WPK_LEAVE_S_MAX (366 * 24 * 3600)

/* Texts are in `arena`, or are borrowed from the command line. */
struct wpk_arguments {
    struct wpk_arena arena;
    const char *config;
    const char *url;
    const char *ca;         /* file of trusted certificates; NULL: the system's */
    const char *token_file; /* NULL: not given */
    const char *data;       /* NULL: not given */
    const char *name;       /* NULL: not given */
    const char *trace;      /* NULL: not given */
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX];
    uint32_t label_count;
    wpk_cpu_flags flags_max;
    int slot_count;           /* 0: as many as cores */
    int run_timeout_s;        /* 0: the engine's default */
    int idle_s;               /* leave after so long without work; 0: never */
    int leave_s;              /* leave so long after the start; 0: never */
    const char *gpu;          /* which one, or "emulated"; NULL: not given */
    const char *architecture; /* of GPUs to build for, "sm_90"; NULL: not given */
    const char *compiler;     /* of a GPU's builders, "nvrtc-12.9"; NULL: not given */
    const char *cuda_dir;     /* of NVRTC and ptxas; NULL: where they are found */
    bool cpu;
    bool check; /* only say what the GPU and the compilers are */
    bool build_only;
    bool run_only;
    bool insecure; /* a token may go over tcp:// to another machine */
    bool is_private;
    enum wpk_log_level log_level;
    enum wpk_log_format log_format;
    bool help; /* only print the usage, or the version */
    bool version;
};

/* Read the command line and the file that it names.
 *   owns    caller calls wpk_arguments_fini, after a failure too
 *   errors  WPK_EINVAL, WPK_ERANGE with the reason in `diag`; those of wpk_config_file_open
 */
wpk_err wpk_arguments_parse(int argc, char **argv, struct wpk_arguments *out,
                            struct wpk_diag *diag);
/* Print the options as a help text. */
void wpk_arguments_print(FILE *out);
void wpk_arguments_fini(struct wpk_arguments *arguments);

/* Read the token, without white space around it, from token_file, or else from the file `token` in
 * the service manager's directory `credentials`; "" where neither exists.
 *
 *   shape   credentials may be NULL; out [WPK_TOKEN_MAX]
 *   errors  WPK_EINVAL the token is empty or too long, or would go unencrypted to another machine
 *           without --insecure; those of wpk_fs_read
 */
wpk_err wpk_arguments_read_token(const struct wpk_arguments *arguments, const char *credentials,
                                 char *out, struct wpk_diag *diag);

#endif
