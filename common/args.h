/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a program or a command. One table defines what is accepted, on the command line and in
 * a file, and is printed as the help. */
#ifndef WPK_COMMON_ARGS_H
#define WPK_COMMON_ARGS_H

#include "common/err.h"

#include <stdint.h>
#include <stdio.h>

#define WPK_ARGS_LIST_MAX 1024 /* a model may have as many inputs or outputs */
#define WPK_ARGS_OPERANDS_MAX 4

enum wpk_option_kind {
    WPK_OPTION_FLAG,    /* bool */
    WPK_OPTION_TEXT,    /* const char *, borrowed from argv */
    WPK_OPTION_INT,     /* int64_t within [min, max] */
    WPK_OPTION_U64,     /* struct wpk_option_u64: no value stands for "not given" */
    WPK_OPTION_LIST,    /* struct wpk_option_list: may be given several times */
    WPK_OPTION_OUTPUT,  /* as TEXT: a file to be written */
    WPK_OPTION_OUTPUTS, /* as LIST: each "FILE" or "NAME=FILE" */
    WPK_OPTION_COUNT,   /* int within [min, max] */
    WPK_OPTION_CALL,    /* by a function */
};

struct wpk_option_u64 {
    bool given;
    uint64_t value;
};

struct wpk_option_list {
    const char *items[WPK_ARGS_LIST_MAX]; /* borrowed from argv */
    int count;
};

/* One option. A table of options ends with WPK_ARGS_END. */
struct wpk_option {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    const char *argument; /* the value's name in the help; NULL for a flag */
    const char *help;     /* NULL: an option for tests, which the help leaves out */
    enum wpk_option_kind kind;
    void *out; /* points to the type of `kind`; unchanged if the option is not given */
    int64_t min;
    int64_t max; /* of TEXT: a text has 1 to so many bytes; 0: any */
    /* CALL: takes the value; `out` is its first argument.   errors  WPK_EINVAL with the reason */
    wpk_err (*call)(void *out, const char *value, struct wpk_diag *diag);
};

/* Rows of a table; only WPK_ARGS_ROW sets a letter. */
#define WPK_ARGS_ROW(name, letter, argument, help, kind, out, min, max)                            \
    {                                                                                              \
        name, letter, argument, help, WPK_OPTION_##kind, out, min, max, NULL                       \
    }
#define WPK_ARGS_FLAG(name, help, out) WPK_ARGS_ROW(name, 0, NULL, help, FLAG, out, 0, 0)
#define WPK_ARGS_TEXT(name, what, help, out) WPK_ARGS_ROW(name, 0, what, help, TEXT, out, 0, 0)
#define WPK_ARGS_U64(name, what, help, out) WPK_ARGS_ROW(name, 0, what, help, U64, out, 0, 0)
#define WPK_ARGS_LIST(name, what, help, out) WPK_ARGS_ROW(name, 0, what, help, LIST, out, 0, 0)
#define WPK_ARGS_OUTPUT(help, out) WPK_ARGS_ROW("output", 'o', "FILE", help, OUTPUT, out, 0, 0)
#define WPK_ARGS_INT(name, what, help, out, min, max)                                              \
    WPK_ARGS_ROW(name, 0, what, help, INT, out, min, max)
#define WPK_ARGS_COUNT(name, what, help, out, min, max)                                            \
    WPK_ARGS_ROW(name, 0, what, help, COUNT, out, min, max)
#define WPK_ARGS_LOG_ROWS(level, format)                                                           \
    WPK_ARGS_CALL("log-level", "LEVEL", "debug, info (default), warn or error", level,             \
                  wpk_args_take_log_level),                                                        \
        WPK_ARGS_CALL("log-format", "NAME", "text (default), json or journal", format,             \
                      wpk_args_take_log_format)
#define WPK_ARGS_CALL(name, what, help, out, call)                                                 \
    {                                                                                              \
        name, 0, what, help, WPK_OPTION_CALL, out, 0, 0, call                                      \
    }
#define WPK_ARGS_END WPK_ARGS_ROW(NULL, 0, NULL, NULL, FLAG, NULL, 0, 0)

struct wpk_args {
    const char *operands[WPK_ARGS_OPERANDS_MAX]; /* borrowed from argv */
    int operand_count;
    bool help; /* --help was given: parsing stopped there */
};

/* Parse the words after the command's name: --name VALUE, --name=VALUE, -l VALUE. `--` ends the
 * options; `-` is an operand.
 *
 *   errors  WPK_EINVAL  unknown option, missing or unwanted value, too many operands
 *           WPK_ERANGE  a number out of its range
 */
wpk_err wpk_args_parse(const struct wpk_option *options, int argc, char **argv,
                       struct wpk_args *out, struct wpk_diag *diag);

/* Take the name of a level or a format of the log.
 *   shape   out: enum wpk_log_level, enum wpk_log_format
 *   errors  WPK_EINVAL */
wpk_err wpk_args_take_log_level(void *out, const char *value, struct wpk_diag *diag);
wpk_err wpk_args_take_log_format(void *out, const char *value, struct wpk_diag *diag);

/* The value that the words give the option last; NULL: none. For what is read before all others. */
const char *wpk_args_value(const char *name, int argc, char **argv);

/* Set an option as a file does, which may write '_' for '-' in its name.
 *   shape   value: NULL for a flag, which becomes true
 *   errors  WPK_ENOENT there is no such option; as above */
wpk_err wpk_args_set(const struct wpk_option *options, const char *name, const char *value,
                     struct wpk_diag *diag);

/* Check that `path` may be written: that it can be, and that it is none of the operands and of the
 * files that the options name.
 *   errors  those of common/fs.h */
wpk_err wpk_args_check_output(const struct wpk_option *options, const struct wpk_args *args,
                              const char *path, struct wpk_diag *diag);
/* The same for all outputs among the options that were given. */
wpk_err wpk_args_check_outputs(const struct wpk_option *options, const struct wpk_args *args,
                               struct wpk_diag *diag);

/* Print the table as a help text. */
void wpk_args_print(const struct wpk_option *options, FILE *out);

#endif
