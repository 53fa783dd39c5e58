/* SPDX-License-Identifier: Apache-2.0 */
/* What every command of wpkctl is given, and how it ends. */
#ifndef WPK_CLIENT_COMMAND_H
#define WPK_CLIENT_COMMAND_H

#include "client/args.h"
#include "common/err.h"

/* Exit codes; documented in docs/man/wpkctl.1. */
enum wpk_exit {
    WPK_EXIT_OK = 0,
    WPK_EXIT_FAILED = 1,      /* the job failed or was cancelled; anything not below */
    WPK_EXIT_INPUT = 2,       /* command line, job file or another input is wrong */
    WPK_EXIT_UNREACHABLE = 3, /* no wpkd there, or it cannot be started */
    WPK_EXIT_NOT_FOUND = 4,   /* no such job, kernel or artifact */
    WPK_EXIT_DENIED = 5,      /* no token, a wrong one, or one without the role; no permission */
    WPK_EXIT_INTERRUPTED = 130,
};

/* What main read from the environment; fixed for the run. NULL: not set. */
struct wpk_command_context {
    const char *program;         /* as it was called, for commands to be copied */
    const char *url;             /* WPK_URL */
    const char *token_file;      /* WPK_TOKEN_FILE */
    const char *ca;              /* WPK_CA */
    const char *home;            /* HOME */
    const char *xdg_config_home; /* XDG_CONFIG_HOME */
    const char *xdg_data_home;   /* XDG_DATA_HOME */
    const char *xdg_runtime_dir; /* XDG_RUNTIME_DIR */
    const char *tmp_dir;         /* TMPDIR */
};

struct wpk_invocation;

struct wpk_command {
    const char *name;
    const char *operands; /* as the help shows them */
    const char *summary;
    enum wpk_exit (*run)(struct wpk_invocation *call);
};

/* A command, as it was called. */
struct wpk_invocation {
    const struct wpk_command *command;
    const struct wpk_command_context *context;
    int argc;
    char **argv; /* the words behind the command's name */
    struct wpk_args args;
    struct wpk_diag diag;
    enum wpk_exit status; /* how it ends where nothing fails */
};

extern const struct wpk_command wpk_command_tune;
extern const struct wpk_command wpk_command_submit;
extern const struct wpk_command wpk_command_status;
extern const struct wpk_command wpk_command_watch;
extern const struct wpk_command wpk_command_jobs;
extern const struct wpk_command wpk_command_workers;
extern const struct wpk_command wpk_command_cancel;
extern const struct wpk_command wpk_command_kernels;
extern const struct wpk_command wpk_command_get;
extern const struct wpk_command wpk_command_trials;
extern const struct wpk_command wpk_command_run;
extern const struct wpk_command wpk_command_complete;
extern const struct wpk_command wpk_command_genes;
extern const struct wpk_command wpk_command_check;
extern const struct wpk_command wpk_command_build;
extern const struct wpk_command wpk_command_lookup;
extern const struct wpk_command wpk_command_token;
extern const struct wpk_command wpk_command_audit;
extern const struct wpk_command wpk_command_db;
extern const struct wpk_command wpk_command_export;
extern const struct wpk_command wpk_command_import;

/* Parse the words of a command that takes operand_min to operand_max operands into `args`. False:
 * the help or what is wrong was printed, and the command ends with call->status. */
WPK_MUST_CHECK bool wpk_command_begin(struct wpk_invocation *call, const struct wpk_option *options,
                                      int operand_min, int operand_max);
/* call->status; after a failure what wpk_command_fail() says of call->diag. */
enum wpk_exit wpk_command_end(struct wpk_invocation *call, wpk_err err);

/* Print a failure as "wpkctl: file:line:column: field: text" and say how the command ends. */
enum wpk_exit wpk_command_fail(wpk_err err, const struct wpk_diag *diag);

#endif
