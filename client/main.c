/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl: the command line of Woodpecker, for people and scripts. Each command has a file. */
#include "client/command.h"
#include "common/format.h"
#include "common/fs.h"
#include "common/machine.h"
#include "common/suggest.h"
#include "target/gpu/nvrtc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_ROW(name, operands, summary) {#name, operands, summary, wpk_command_##name},
static const struct wpk_command commands[] = {WPK_COMMAND_LIST(COMMAND_ROW)};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *out)
{
    fputs("usage: wpkctl COMMAND [OPTION...] [OPERAND...]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char left[64];
        struct wpk_buf summary = {0};
        snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].operands);
        wpk_format_wrap(commands[i].summary, 28, WPK_HELP_WIDTH, &summary);
        fprintf(out, strlen(left) <= 24 ? "  %-24s  %s" : "  %s\n                            %s",
                left, wpk_buf_text(&summary));
        wpk_buf_fini(&summary);
    }
    fputs("  version                   print the version\n"
          "  help [COMMAND]            this text, or a command's options\n\n"
          "tune needs no service. The others talk to the wpkd at --server, else at $WPK_URL, else "
          "to\n"
          "that of ~/.config/woodpecker/wpkctl.json, else to the private one over the history in\n"
          "--data.\n\n"
          "exit codes: 0 done, 1 failed or cancelled, 2 wrong input, 3 no wpkd, 4 not found,\n"
          "            5 not allowed, 130 interrupted\n",
          out);
}

static const struct wpk_command *find_command(const char *name)
{
    int found = WPK_FIND(struct wpk_command, name, commands, COMMAND_COUNT, name);
    return found >= 0 ? &commands[found] : NULL;
}

static enum wpk_exit complain(const char *name)
{
    struct wpk_suggest suggest = {.word = name};

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        wpk_suggest_offer(&suggest, commands[i].name);
    }
    wpk_suggest_offer(&suggest, "version");
    wpk_suggest_offer(&suggest, "help");
    const char *near = wpk_suggest_text(&suggest);
    fprintf(stderr, "wpkctl: there is no command '%s'%s\n", name,
            near[0] != '\0' ? near : "; wpkctl help lists them");
    return WPK_EXIT_INPUT;
}

static enum wpk_exit version_main(struct wpk_invocation *call)
{
    bool json = false;
    const struct wpk_option options[] = {
        WPK_ARGS_FLAG("json", "as JSON", &json),
        WPK_ARGS_END,
    };

    if (wpk_command_begin(call, options, 0, 0)) {
        puts(json ? "{\"version\":\"" WPK_VERSION "\"}" : "wpkctl " WPK_VERSION);
    }
    return call->status;
}

static const struct wpk_command version = {
    .name = "version", .operands = "", .summary = "print the version", .run = version_main};

static enum wpk_exit run(const struct wpk_command *command,
                         const struct wpk_command_context *context, int argc, char **argv)
{
    struct wpk_invocation call = {
        .command = command, .context = context, .argc = argc, .argv = argv};
    return command->run(&call);
}

static enum wpk_exit help(const struct wpk_command_context *context, const char *name)
{
    char *words[] = {(char[]){"--help"}};

    if (name == NULL) {
        print_usage(stdout);
        return WPK_EXIT_OK;
    }
    const struct wpk_command *command = find_command(name);
    return command != NULL ? run(command, context, 1, words) : complain(name);
}

/* Output that was lost, on a full disk say, is no success; a reader that has left knows. */
static enum wpk_exit end_output(enum wpk_exit status)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return status;
    }
    int failed = errno;
    struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (failed == EPIPE || (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0)) {
        return status;
    }
    fprintf(stderr, "wpkctl: cannot write the output%s%s%s\n", failed != 0 ? ": " : "",
            failed != 0 ? strerror(failed) : "", wpk_fs_advice(failed));
    return status == WPK_EXIT_OK ? WPK_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
    const char *tmp_dir = getenv("TMPDIR");
    const struct wpk_command_context context = {
        .program = argc > 0 ? argv[0] : "wpkctl",
        .url = getenv("WPK_URL"),
        .token_file = getenv("WPK_TOKEN_FILE"),
        .ca = getenv("WPK_CA"),
        .home = getenv("HOME"),
        .xdg_config_home = getenv("XDG_CONFIG_HOME"),
        .xdg_data_home = getenv("XDG_DATA_HOME"),
        .xdg_runtime_dir = getenv("XDG_RUNTIME_DIR"),
        .tmp_dir = tmp_dir != NULL && tmp_dir[0] != '\0' ? tmp_dir : "/tmp",
    };

    struct wpk_diag diag = {0};
    wpk_cuda_set_toolkit(getenv(WPK_CUDA_DIRECTORY_VARIABLE));
    wpk_err err = wpk_limits_raise_stack(argv, &diag);
    if (err != WPK_OK) {
        return (int)wpk_command_fail(err, &diag);
    }
    /* A reader that leaves (`| head`) is seen as a failed write, and children keep theirs. */
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        print_usage(stderr);
        return WPK_EXIT_INPUT;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        return (int)help(&context, argc > 2 ? argv[2] : NULL);
    }
    bool is_version = strcmp(name, "version") == 0 || strcmp(name, "--version") == 0;
    const struct wpk_command *command = is_version ? &version : find_command(name);
    return command == NULL ? (int)complain(name)
                           : (int)end_output(run(command, &context, argc - 2, argv + 2));
}
