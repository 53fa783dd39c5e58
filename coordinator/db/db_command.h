/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `wpkd --db`, their options and their report. Commands that only read the
 * directory run beside a wpkd. */
#ifndef WPK_COORDINATOR_DB_DB_COMMAND_H
#define WPK_COORDINATOR_DB_DB_COMMAND_H

#include "common/buf.h"
#include "common/json.h"
#include "coordinator/store/store.h"

#include <stdint.h>

#define WPK_DB_FOUND_MAX 100 /* findings that are listed; others are counted */

struct wpk_db_options {
    const char *data_dir;
    const char *file; /* the operand: a directory or a file; NULL: none */
    int64_t older_than_days;
    int64_t keep; /* best of each problem that stay */
    bool dry_run;
};

/* A command's report: numbers and findings, printed as text or as JSON at the end. */
struct wpk_db_report {
    struct wpk_json_writer *json;
    struct wpk_buf text;
    struct wpk_buf found; /* one finding a line */
    int64_t found_count;
};

/* Add a member. In the text, spaces replace the underscores of `key`. */
void wpk_db_say(struct wpk_db_report *report, const char *key, int64_t number);
void wpk_db_say_text(struct wpk_db_report *report, const char *key, const char *text);
void wpk_db_found(struct wpk_db_report *report, const char *format, ...) WPK_PRINTF(2, 3);

/* ---- the commands */

/* Check everything: pages, references, the bytes of every artifact and manifest.
 *   errors  WPK_ECORRUPT findings, which are in the report; WPK_ENOENT no history */
wpk_err wpk_db_check(const struct wpk_db_options *options, struct wpk_db_report *report,
                     struct wpk_diag *diag);
/* Copy the history as of now into `file`, a new directory; all of it or nothing. */
wpk_err wpk_db_back_up(const struct wpk_db_options *options, struct wpk_db_report *report,
                       struct wpk_diag *diag);
/* Replace the history by the backup `file`; the old history is set aside. */
wpk_err wpk_db_restore(const struct wpk_db_options *options, struct wpk_db_report *report,
                       struct wpk_diag *diag);
/* Forget data older than `older_than_days`, except the best. */
wpk_err wpk_db_prune(const struct wpk_db_options *options, struct wpk_db_report *report,
                     struct wpk_diag *diag);
/* Export problems, trials and served kernels with their artifacts to `file`; import them from a
 * file of another installation. */
wpk_err wpk_db_export(const struct wpk_db_options *options, struct wpk_db_report *report,
                      struct wpk_diag *diag);
wpk_err wpk_db_import(const struct wpk_db_options *options, struct wpk_db_report *report,
                      struct wpk_diag *diag);

/* Commands on a whole data directory: `wpkd --db COMMAND`, which `wpkctl db`, `export` and `import`
 * run. */

/* Run `wpkd --db` with the arguments after it. Returns the exit code, as wpkctl's: 0 done; 1
 * failed, or the data is damaged; 2 usage or input; 3 a wpkd uses the directory; 4 not found. */
int wpk_db_main(int argc, char **argv);

/* Copying the files of a data directory. For db.c and db_backup.c. */

/* True if `directory`/`name` exists. */
bool wpk_db_exists(const char *directory, const char *name);

/* Copy the file `name` from one directory to another, durably.
 *   errors  WPK_ENOENT; WPK_ERANGE larger than size_max; those of wpk_fs_read and wpk_fs_write */
wpk_err wpk_db_copy_file(const char *from, const char *to, const char *name, size_t size_max,
                         unsigned mode, struct wpk_diag *diag);

/* Copy every artifact that `to` lacks, and add their number to *count. A damaged or vanishing one
 * is skipped; a check of the copy finds that it is missing. */
wpk_err wpk_db_copy_artifacts(const char *from, const char *to, int64_t *count,
                              struct wpk_diag *diag);

/* Run by root on another user's data directory, give root's files in it to the directory's owner.
 * The owner may be hostile and change the directory meanwhile, so a file with other hard links is
 * not given. Does nothing for other users.
 *   errors  WPK_EACCES, WPK_EIO */
wpk_err wpk_db_give_to_owner(const char *data_dir, struct wpk_diag *diag);

/* Rename within a directory, durably. A missing file is no error. */
wpk_err wpk_db_rename(const char *directory, const char *name, const char *to,
                      struct wpk_diag *diag);

#endif
