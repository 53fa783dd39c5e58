/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a command. One table defines what is accepted and is printed as the help. */
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
    const char *help;
    enum wpk_option_kind kind;
    void *out; /* points to the type of `kind`; unchanged if the option is not given */
    int64_t min;
    int64_t max;
};

/* Rows of a table; only WPK_ARGS_ROW sets a letter. */
#define WPK_ARGS_ROW(name, letter, argument, help, kind, out, min, max)                            \
    {                                                                                              \
        name, letter, argument, help, WPK_OPTION_##kind, out, min, max                             \
    }
#define WPK_ARGS_FLAG(name, help, out) WPK_ARGS_ROW(name, 0, NULL, help, FLAG, out, 0, 0)
#define WPK_ARGS_TEXT(name, what, help, out) WPK_ARGS_ROW(name, 0, what, help, TEXT, out, 0, 0)
#define WPK_ARGS_U64(name, what, help, out) WPK_ARGS_ROW(name, 0, what, help, U64, out, 0, 0)
#define WPK_ARGS_LIST(name, what, help, out) WPK_ARGS_ROW(name, 0, what, help, LIST, out, 0, 0)
#define WPK_ARGS_OUTPUT(help, out) WPK_ARGS_ROW("output", 'o', "FILE", help, OUTPUT, out, 0, 0)
#define WPK_ARGS_INT(name, what, help, out, min, max)                                              \
    WPK_ARGS_ROW(name, 0, what, help, INT, out, min, max)
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
WPK_MUST_CHECK wpk_err wpk_args_parse(const struct wpk_option *options, int argc, char **argv,
                                      struct wpk_args *out, struct wpk_diag *diag);

/* Check that `path` may be written: that it can be, and that it is none of the operands and of the
 * files that the options name.
 *   errors  those of common/output_path.h */
WPK_MUST_CHECK wpk_err wpk_args_check_output(const struct wpk_option *options,
                                             const struct wpk_args *args, const char *path,
                                             struct wpk_diag *diag);
/* The same for all outputs among the options that were given. */
WPK_MUST_CHECK wpk_err wpk_args_check_outputs(const struct wpk_option *options,
                                              const struct wpk_args *args, struct wpk_diag *diag);

/* Print the table as a help text. */
void wpk_args_print(const struct wpk_option *options, FILE *out);

#endif
