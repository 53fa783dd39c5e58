/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of wpkctl: what each is given, and its exit code. */
#ifndef WPK_CLIENT_COMMAND_H
#define WPK_CLIENT_COMMAND_H

#include "common/args.h"
#include "common/err.h"

/* Exit codes; documented in docs/man/wpkctl.1. */
enum wpk_exit {
    WPK_EXIT_OK = 0,
    WPK_EXIT_FAILED = 1,      /* the job failed or was cancelled; every failure not below */
    WPK_EXIT_INPUT = 2,       /* command line, job file or another input is wrong */
    WPK_EXIT_UNREACHABLE = 3, /* no wpkd answers, or it cannot be started */
    WPK_EXIT_NOT_FOUND = 4,   /* no such job, kernel or artifact */
    WPK_EXIT_DENIED = 5,      /* token missing, wrong or without the role; no permission */
    WPK_EXIT_INTERRUPTED = 130,
};

/* The environment, as main read it; constant for the run. NULL: not set. */
struct wpk_command_context {
    const char *program;         /* argv[0], for commands in messages that users copy */
    const char *url;             /* WPK_URL */
    const char *token_file;      /* WPK_TOKEN_FILE */
    const char *ca;              /* WPK_CA */
    const char *home;            /* HOME */
    const char *xdg_config_home; /* XDG_CONFIG_HOME */
    const char *xdg_data_home;   /* XDG_DATA_HOME */
    const char *xdg_runtime_dir; /* XDG_RUNTIME_DIR */
    const char *tmp_dir;         /* TMPDIR, else /tmp */
};

struct wpk_invocation;

struct wpk_command {
    const char *name;
    const char *operands; /* text for the help */
    const char *summary;
    enum wpk_exit (*run)(struct wpk_invocation *call);
};

/* One call of a command. */
struct wpk_invocation {
    const struct wpk_command *command;
    const struct wpk_command_context *context;
    int argc;
    char **argv; /* the words after the command's name */
    struct wpk_args args;
    struct wpk_diag diag;
    enum wpk_exit status; /* exit code if nothing fails */
};

/* name, operands, summary; in the order of the help */
#define WPK_COMMAND_LIST(X)                                                                        \
    X(tune, "FILE", "tune a job file or a model, here or by --server")                             \
    X(check, "FILE", "validate a job file or an ONNX model and show its operators")                \
    X(build, "SCHEDULE", "build, verify and time a schedule edited by hand")                       \
    X(submit, "FILE", "hand a job file, or --op, to a running wpkd and print the job's id")        \
    X(status, "JOB", "how far a job is, or what it found")                                         \
    X(watch, "JOB", "follow a job until it ends; Ctrl-C stops only the watching")                  \
    X(cancel, "JOB", "stop a job; what was measured stays in history")                             \
    X(jobs, "[pause|resume|cancel JOB]",                                                           \
      "every job, newest first; or hold one, let it go on, stop it")                               \
    X(trials, "JOB", "what a job tried, how each ended, and why what failed did")                  \
    X(why, "JOB|NAME", "why a candidate won: what was tried, what each gene is worth, how sure")   \
    X(plot, "JOB|NAME", "how a search converged, as an SVG")                                       \
    X(report, "JOB|PLAN", "a job or a model's plan as one HTML file, without a network")           \
    X(dashboard, "", "the pages of wpkd in a browser of this machine, until Ctrl-C")               \
    X(learn, "", "a prior of this history: searches of other operators begin from it")             \
    X(genes, "FILE|NAME|FINGERPRINT", "what can be pinned for an operator, and to what")           \
    X(operators, "", "the ONNX operators that models may have")                                    \
    X(strategies, "", "how candidates can be chosen: each strategy, its options, when to use it")  \
    X(run, "NAME|FINGERPRINT|FILE",                                                                \
      "run what is served, or an ONNX model, on NumPy files, and compare with the reference")      \
    X(profile, "MODEL.wpk", "where the time of a model's plan goes, step by step")                 \
    X(show, "MODEL.wpk", "draw a model's plan as an SVG: what became of each node, and why")       \
    X(bench, "MODEL.wpk", "time a model's plan, and other engines beside it")                      \
    X(prove, "BEFORE.wpk AFTER.wpk|MODEL.onnx",                                                    \
      "time two plans of a model in turns: is the second faster?")                                 \
    X(complete, "jobs|kernels|workers|names",                                                      \
      "what shells complete from; asks a wpkd that runs, and starts none")                         \
    X(lookup, "FILE|FINGERPRINT",                                                                  \
      "what is known of a job file's operators, or of one, and how well it fits")                  \
    X(pin, "MODEL.onnx|JOB.json|LOCK",                                                             \
      "write down which kernel each operator has, signed; or see what of that still applies")      \
    X(misses, "", "operators that were looked up and are not there, those that cost most first")   \
    X(kernels, "[pin|unpin|revoke|rollback|history KERNEL]",                                       \
      "every kernel that is served; or keep one, take one back, return to the one "                \
      "before, see those before it")                                                               \
    X(get, "FINGERPRINT|NAME", "fetch a kernel's shared object or its schedule")                   \
    X(workers, "[drain|quarantine|resume NAME]",                                                   \
      "the workers of a running wpkd; or let one finish, believe it no more, take it back")        \
    X(token, "create|list|revoke [TOKEN]", "who may do what; create prints the secret, once")      \
    X(audit, "", "who changed what, and whose credential was refused; newest first")               \
    X(export, "FILE", "write a history's trials, kernels and artifacts for another installation")  \
    X(import, "FILE", "add what another installation wrote; what is known stays as it is")         \
    X(db, "check|backup|restore|prune [DIR]",                                                      \
      "a history as a whole: read it all, copy it, put a copy back, forget what is old")

#define WPK_COMMAND_DECLARE(name, operands, summary)                                               \
    enum wpk_exit wpk_command_##name(struct wpk_invocation *call);
WPK_COMMAND_LIST(WPK_COMMAND_DECLARE)

/* Parse the words of a command that takes operand_min to operand_max operands into call->args.
 * False: the help or an error was printed, and the command ends with call->status. */
WPK_MUST_CHECK bool wpk_command_begin(struct wpk_invocation *call, const struct wpk_option *options,
                                      int operand_min, int operand_max);
/* The command's exit code: call->status, or after a failure that of wpk_command_fail(). */
enum wpk_exit wpk_command_end(struct wpk_invocation *call, wpk_err err);

/* Print a failure as "wpkctl: file:line:column: field: text" and return the exit code. */
enum wpk_exit wpk_command_fail(wpk_err err, const struct wpk_diag *diag);

#endif
