/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command.h"

#include "common/format.h"

#include <stdio.h>

static void print_help(const struct wpk_command *command, const struct wpk_option *options)
{
    struct wpk_buf summary = {0};

    wpk_format_wrap(command->summary, 0, WPK_HELP_WIDTH, &summary);
    printf("usage: wpkctl %s [OPTION...]%s%s\n\n%s\n", command->name,
           command->operands[0] != '\0' ? " " : "", command->operands, wpk_buf_text(&summary));
    wpk_buf_fini(&summary);
    wpk_args_print(options, stdout);
}

bool wpk_command_begin(struct wpk_invocation *call, const struct wpk_option *options,
                       int operand_min, int operand_max)
{
    const struct wpk_command *command = call->command;
    struct wpk_args *args = &call->args;
    wpk_err err = wpk_args_parse(options, call->argc, call->argv, args, &call->diag);

    if (err == WPK_OK && args->help) {
        print_help(command, options);
        return false;
    }
    if (err == WPK_OK && (args->operand_count < operand_min || args->operand_count > operand_max)) {
        err = wpk_fail(&call->diag, WPK_EINVAL,
                       "usage: wpkctl %s [OPTION...]%s%s; wpkctl help %s lists the options",
                       command->name, command->operands[0] != '\0' ? " " : "", command->operands,
                       command->name);
    }
    err = err == WPK_OK ? wpk_args_check_outputs(options, args, &call->diag) : err;
    call->status = wpk_command_end(call, err);
    return err == WPK_OK;
}

enum wpk_exit wpk_command_end(struct wpk_invocation *call, wpk_err err)
{
    return err == WPK_OK ? call->status : wpk_command_fail(err, &call->diag);
}

enum wpk_exit wpk_command_fail(wpk_err err, const struct wpk_diag *diag)
{
    char text[2 * WPK_DIAG_TEXT_MAX] = "";

    WPK_ASSERT(err != WPK_OK);
    if (diag != NULL) {
        wpk_diag_format(diag, text, sizeof(text));
    }
    /* A place without words, such as a file that was too long, still deserves the code's text. */
    fprintf(stderr, "wpkctl: %s%s\n", text,
            diag == NULL || diag->text[0] == '\0' ? wpk_err_text(err) : "");
    switch (err) {
    case WPK_EINVAL:
    case WPK_EPARSE:
    case WPK_ERANGE:
    case WPK_EUNSUPPORTED:
        return WPK_EXIT_INPUT;
    case WPK_ECLOSED:
    case WPK_ETIMEDOUT:
    case WPK_EBUSY:
        return WPK_EXIT_UNREACHABLE;
    case WPK_ENOENT:
        return WPK_EXIT_NOT_FOUND;
    case WPK_EACCES:
        return WPK_EXIT_DENIED;
    default:
        return WPK_EXIT_FAILED;
    }
}
