/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/db/db_command.h"

#include "common/args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAYS_MAX 36500
#define KEEP_MAX 1000000

enum { DONE, FAILED, INPUT, BUSY, MISSING };

struct command {
    const char *name;
    const char *operand; /* NULL: it takes none */
    wpk_err (*run)(const struct wpk_db_options *options, struct wpk_db_report *report,
                   struct wpk_diag *diag);
};

static const struct command commands[] = {
    {"check", NULL, wpk_db_check},
    {"backup", "DIRECTORY", wpk_db_back_up},
    {"restore", "DIRECTORY", wpk_db_restore},
    {"prune", NULL, wpk_db_prune},
    {"export", "FILE", wpk_db_export},
    {"import", "FILE", wpk_db_import},
};

static const char usage[] =
    "usage: wpkd --db COMMAND --data DIR [OPTION...] [OPERAND]\n"
    "  check              read everything and say what is wrong with it\n"
    "  backup DIRECTORY   copy the history into a new directory\n"
    "  restore DIRECTORY  put a backup in the history's place\n"
    "  prune              forget trials, jobs and kernels that are old\n"
    "    --older-than DAYS  how old; default 90\n"
    "    --keep K           but for each operator's best K; default 16\n"
    "    --dry-run          only say what would go\n"
    "  export FILE        write trials and kernels for another installation; - is standard output\n"
    "  import FILE        read what another installation wrote; - is standard input\n"
    "    --json             of each: its report as JSON\n"
    "check, backup and export work beside a running wpkd; the others need it stopped.\n";

/* ---- reports */

static void put_found(struct wpk_db_report *report)
{
    wpk_json_begin_array(report->json, "found");
    for (const char *at = wpk_buf_text(&report->found); *at != '\0';) {
        size_t length = strcspn(at, "\n");
        wpk_json_put_bytes(report->json, NULL, at, length);
        at += length + 1;
    }
    wpk_json_end(report->json);
    wpk_json_put_int(report->json, "found_count", report->found_count);
}

static wpk_err print_report(struct wpk_db_report *report, bool json, FILE *out)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_buf_status(&report->text);
    if (json) {
        put_found(report);
        err = wpk_json_print(report->json, false, &text);
        wpk_buf_append_byte(&text, '\n');
    } else {
        wpk_buf_append_text(&text, wpk_buf_text(&report->text));
        wpk_buf_append_text(&text, wpk_buf_text(&report->found));
        if (report->found_count > WPK_DB_FOUND_MAX) {
            wpk_buf_printf(&text, "and %" PRId64 " more\n", report->found_count - WPK_DB_FOUND_MAX);
        }
    }
    fputs(wpk_buf_text(&text), out);
    wpk_buf_fini(&text);
    return err == WPK_OK && fflush(out) != 0 ? WPK_EIO : err;
}

/* ---- the command line */

static const struct command *find(const char *name)
{
    int found =
        WPK_FIND(struct command, name, commands, sizeof commands / sizeof commands[0], name);
    return found >= 0 ? &commands[found] : NULL;
}

/* argv[0] is the command. */
static wpk_err parse(int argc, char **argv, const struct command *command,
                     struct wpk_db_options *options, bool *json, struct wpk_diag *diag)
{
    const struct wpk_option known[] = {
        WPK_ARGS_TEXT("data", "DIR", "", &options->data_dir),
        WPK_ARGS_INT("older-than", "DAYS", "", &options->older_than_days, 0, DAYS_MAX),
        WPK_ARGS_INT("keep", "K", "", &options->keep, 0, KEEP_MAX),
        WPK_ARGS_FLAG("dry-run", "", &options->dry_run),
        WPK_ARGS_FLAG("json", "", json),
        WPK_ARGS_END,
    };
    struct wpk_args args = {.help = true};

    wpk_err err = wpk_args_parse(known, argc - 1, argv + 1, &args, diag);
    bool is_whole =
        !args.help && options->data_dir != NULL && args.operand_count == (command->operand != NULL);
    options->file = args.operand_count > 0 ? args.operands[0] : NULL;
    return err == WPK_OK && !is_whole ? WPK_EINVAL : err;
}

static int exit_code(wpk_err err)
{
    switch (err) {
    case WPK_OK:
        return DONE;
    case WPK_EINVAL:
    case WPK_EPARSE:
    case WPK_ERANGE:
    case WPK_EEXIST:
        return INPUT;
    case WPK_EBUSY:
        return BUSY;
    case WPK_ENOENT:
        return MISSING;
    default:
        return FAILED;
    }
}

int wpk_db_main(int argc, char **argv)
{
    struct wpk_db_options options = {.older_than_days = 90, .keep = 16};
    struct wpk_db_report report = {0};
    struct wpk_diag diag = {0};
    bool json = false;
    const struct command *command = argc > 0 ? find(argv[0]) : NULL;
    if (command == NULL || parse(argc, argv, command, &options, &json, &diag) != WPK_OK) {
        if (diag.text[0] != '\0') {
            fprintf(stderr, "wpkd: %s\n", diag.text);
        }
        fputs(usage, stderr);
        return INPUT;
    }
    report.json = wpk_json_writer_new_object();
    wpk_err err = command->run(&options, &report, &diag);
    wpk_err given = wpk_db_give_to_owner(options.data_dir, err == WPK_OK ? &diag : NULL);
    err = err == WPK_OK ? given : err;
    /* An export has standard output for itself. */
    bool taken = options.file != NULL && strcmp(options.file, "-") == 0;
    if (err == WPK_OK || err == WPK_ECORRUPT) {
        wpk_err printed = print_report(&report, json, taken ? stderr : stdout);
        err = err == WPK_OK ? printed : err;
    }
    if (err != WPK_OK) {
        char text[1024];
        wpk_diag_format(&diag, text, sizeof text);
        fprintf(stderr, "wpkd: %s%s\n", text, diag.text[0] == '\0' ? wpk_err_text(err) : "");
    }
    wpk_json_writer_free(report.json);
    wpk_buf_fini(&report.text);
    wpk_buf_fini(&report.found);
    return exit_code(err);
}
