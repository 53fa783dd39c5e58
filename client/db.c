/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl db, export and import: work on a history as a whole. `wpkd --db` does the work, because
 * only wpkd knows the database. This file finds the history and the program, and executes it. */
#include "client/command.h"
#include "client/show.h"
#include "client/trial_list.h"
#include "common/fs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE_MAX ((size_t)4096)
#define WORDS_MAX 16

/* A command line of wpkd. */
struct words {
    const char *word[WORDS_MAX + 1];
    int count;
};

static void add(struct words *words, const char *word)
{
    WPK_ASSERT(words->count < WORDS_MAX);
    words->word[words->count++] = word;
}

struct db {
    const char *data_dir;
    int64_t older_than; /* days; -1: not given */
    int64_t keep;       /* likewise */
    bool dry_run;
    bool json;
};

static const char *number_text(int64_t number, char out[24])
{
    snprintf(out, 24, "%" PRId64, number);
    return out;
}

/* Returns only when that failed. */
static wpk_err become(const struct words *words, struct wpk_diag *diag)
{
    struct wpk_buf path = {.size_max = PATH_SIZE_MAX};

    wpk_err err = wpk_fs_program_dir(&path, diag);
    wpk_buf_append_text(&path, "/wpkd");
    err = err == WPK_OK ? wpk_buf_status(&path) : err;
    if (err == WPK_OK) {
        (void)fflush(NULL);
        execv(wpk_buf_text(&path), (char **)(uintptr_t)words->word); /* which it does not change */
        err = wpk_fail(diag, WPK_ECLOSED, "cannot start %s: %s%s", wpk_buf_text(&path),
                       strerror(errno), wpk_fs_advice(errno));
    }
    wpk_buf_fini(&path);
    return err;
}

static wpk_err run(const struct wpk_command_context *context, const struct db *db,
                   const char *command, const char *operand, struct wpk_diag *diag)
{
    struct wpk_buf data = {.size_max = PATH_SIZE_MAX};
    struct words words = {.word = {"wpkd", "--db", command, "--data"}, .count = 4};
    char older[24];
    char keep[24];

    wpk_err err = wpk_fs_data_dir(db->data_dir, context->xdg_data_home, context->home, &data, diag);
    if (err == WPK_OK) {
        add(&words, wpk_buf_text(&data));
        if (db->older_than >= 0) {
            add(&words, "--older-than");
            add(&words, number_text(db->older_than, older));
        }
        if (db->keep >= 0) {
            add(&words, "--keep");
            add(&words, number_text(db->keep, keep));
        }
        if (db->dry_run) {
            add(&words, "--dry-run");
        }
        if (db->json) {
            add(&words, "--json");
        }
        if (operand != NULL) {
            add(&words, "--");
            add(&words, operand);
        }
        err = become(&words, diag);
    }
    wpk_buf_fini(&data);
    return err;
}

#define DATA_ROWS(db)                                                                              \
    WPK_ARGS_TEXT("data", "DIR", "the history; default ~/.local/share/woodpecker",                 \
                  &(db).data_dir),                                                                 \
        WPK_ARGS_FLAG("json", "the report as JSON", &(db).json)

enum wpk_exit wpk_command_db(struct wpk_invocation *call)
{
    struct db db = {.older_than = -1, .keep = -1};
    const struct wpk_option options[] = {
        DATA_ROWS(db),
        WPK_ARGS_INT("older-than", "DAYS", "prune: what is older; default 90", &db.older_than, 0,
                     36500),
        WPK_ARGS_INT("keep", "K", "prune: but for each operator's best K; default 16", &db.keep, 0,
                     1000000),
        WPK_ARGS_FLAG("dry-run", "prune: only say what would go", &db.dry_run),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 1, 2)) {
        return call->status;
    }
    static const char *const verbs[] = {"check", "backup", "restore", "prune", NULL};
    const char *what = call->args.operands[0];
    bool prune = strcmp(what, "prune") == 0;
    bool takes_directory = strcmp(what, "backup") == 0 || strcmp(what, "restore") == 0;
    wpk_err err = WPK_OK;
    if (wpk_show_verb(what, verbs, &call->diag) < 0) {
        err = WPK_EINVAL;
    } else if (takes_directory != (call->args.operand_count == 2)) {
        err = wpk_fail(&call->diag, WPK_EINVAL, "db %s takes %s", what,
                       takes_directory ? "a directory" : "nothing more");
    } else if (!prune && (db.older_than >= 0 || db.keep >= 0 || db.dry_run)) {
        err =
            wpk_fail(&call->diag, WPK_EINVAL, "--older-than, --keep and --dry-run are of db prune");
    } else {
        err = run(call->context, &db, what,
                  call->args.operand_count == 2 ? call->args.operands[1] : NULL, &call->diag);
    }
    return wpk_command_fail(err, &call->diag);
}

/* One search in the format of other tuners. */
static wpk_err export_t4(const struct wpk_command_context *context, const char *data_dir,
                         const char *job, const char *op, const char *path, struct wpk_diag *diag)
{
    const struct wpk_session_options given = {.need = WPK_SESSION_HISTORY, .data_dir = data_dir};
    struct wpk_session session = {0};
    struct wpk_arena arena = {0};
    struct wpk_trial_list list = {0};
    struct wpk_buf text = {0};
    wpk_err err = wpk_session_open(context, &given, &session, diag);
    err = err == WPK_OK ? wpk_trial_list_fetch(&session, job, op, &arena, &list, diag) : err;
    err = err == WPK_OK ? wpk_t4_encode(&list, &text) : err;
    err = err == WPK_OK ? wpk_fs_write(path, text.data, text.size, 0666, diag) : err;
    wpk_buf_fini(&text);
    wpk_arena_fini(&arena);
    wpk_session_close(&session);
    return err;
}

static wpk_err check_format(const char *format, const char *job, const char *op,
                            struct wpk_diag *diag)
{
    if (format != NULL && strcmp(format, "t4") != 0) {
        return wpk_fail(
            diag, WPK_EINVAL,
            "--format is \"%s\", but must be t4; without it a file is of a whole history", format);
    }
    if ((format != NULL) != (job != NULL) || (format == NULL && op != NULL)) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--format t4 and --job belong together, and --op to them");
    }
    return WPK_OK;
}

static enum wpk_exit copy(struct wpk_invocation *call, bool exports)
{
    struct db db = {.older_than = -1, .keep = -1};
    const char *format = NULL, *job = NULL, *op = NULL;
    const struct wpk_option options[] = {
        DATA_ROWS(db),
        WPK_ARGS_TEXT("format", "t4",
                      exports ? "one search's trials for other tuners, as T4 JSON 1.0.0"
                              : "trials of one operator, as T4 JSON 1.0.0, become hints",
                      &format),
        WPK_ARGS_TEXT("job", exports ? "JOB|NAME" : "FILE",
                      exports ? "t4: of which job, or of the newest with this operator"
                              : "t4: the job file that has the operator",
                      &job),
        WPK_ARGS_TEXT("op", "NAME", "t4: an operator of a job that has several", &op),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    const char *path = call->args.operands[0];
    wpk_err err = check_format(format, job, op, &call->diag);
    if (err == WPK_OK && format != NULL) {
        err = exports ? export_t4(call->context, db.data_dir, job, op, path, &call->diag)
                      : wpk_import_t4(path, job, op, &call->diag);
        path = "/dev/stdin"; /* of an import: hints */
    }
    if (err == WPK_OK && (format == NULL || !exports)) {
        err = run(call->context, &db, exports ? "export" : "import", path, &call->diag);
    }
    return wpk_command_end(call, err);
}

enum wpk_exit wpk_command_export(struct wpk_invocation *call)
{
    return copy(call, true);
}

enum wpk_exit wpk_command_import(struct wpk_invocation *call)
{
    return copy(call, false);
}
