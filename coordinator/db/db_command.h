/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `wpkd --db`, their options and their report. Commands that only read the
 * directory run beside a wpkd. */
#ifndef WPK_COORDINATOR_DB_DB_COMMAND_H
#define WPK_COORDINATOR_DB_DB_COMMAND_H

#include "common/json.h"
#include "coordinator/store/store.h"

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
WPK_MUST_CHECK wpk_err wpk_db_check(const struct wpk_db_options *options,
                                    struct wpk_db_report *report, struct wpk_diag *diag);
/* Copy the history as of now into `file`, a new directory; all of it or nothing. */
WPK_MUST_CHECK wpk_err wpk_db_back_up(const struct wpk_db_options *options,
                                      struct wpk_db_report *report, struct wpk_diag *diag);
/* Replace the history by the backup `file`; the old history is set aside. */
WPK_MUST_CHECK wpk_err wpk_db_restore(const struct wpk_db_options *options,
                                      struct wpk_db_report *report, struct wpk_diag *diag);
/* Forget data older than `older_than_days`, except the best. */
WPK_MUST_CHECK wpk_err wpk_db_prune(const struct wpk_db_options *options,
                                    struct wpk_db_report *report, struct wpk_diag *diag);
/* Export problems, trials and served kernels with their artifacts to `file`; import them from a
 * file of another installation. */
WPK_MUST_CHECK wpk_err wpk_db_export(const struct wpk_db_options *options,
                                     struct wpk_db_report *report, struct wpk_diag *diag);
WPK_MUST_CHECK wpk_err wpk_db_import(const struct wpk_db_options *options,
                                     struct wpk_db_report *report, struct wpk_diag *diag);

#endif
