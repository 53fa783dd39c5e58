/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `wpkd --db`, what they are given, and what they report. Those that only read work
 * beside a running wpkd. */
#ifndef WPK_COORDINATOR_DB_DB_COMMAND_H
#define WPK_COORDINATOR_DB_DB_COMMAND_H

#include "common/json.h"
#include "coordinator/store/store.h"

#define WPK_DB_FOUND_MAX 100 /* of what is wrong, named one by one */

struct wpk_db_options {
    const char *data_dir;
    const char *file; /* the operand: a directory or a file; NULL: none */
    int64_t older_than_days;
    int64_t keep; /* of each problem, the best */
    bool dry_run;
};

/* What a command says: numbers and findings, printed as text or as JSON in the end. */
struct wpk_db_report {
    struct wpk_json_writer *json;
    struct wpk_buf text;
    struct wpk_buf found; /* a finding on each line */
    int64_t found_count;
};

/* `key` reads as words with spaces in the text. */
void wpk_db_say(struct wpk_db_report *report, const char *key, int64_t number);
void wpk_db_say_text(struct wpk_db_report *report, const char *key, const char *text);
void wpk_db_found(struct wpk_db_report *report, const char *format, ...) WPK_PRINTF(2, 3);

/* ---- the commands */

/* Read everything: pages, references, every artifact's and manifest's bytes.
 *   errors  WPK_ECORRUPT something is wrong: it is in the report; WPK_ENOENT no history there */
WPK_MUST_CHECK wpk_err wpk_db_check(const struct wpk_db_options *options,
                                    struct wpk_db_report *report, struct wpk_diag *diag);
/* Copy the history, as it is now, into `file`, a directory that is made; all of it or nothing. */
WPK_MUST_CHECK wpk_err wpk_db_back_up(const struct wpk_db_options *options,
                                      struct wpk_db_report *report, struct wpk_diag *diag);
/* Put the backup `file` in the place of the history; what was there is set aside. */
WPK_MUST_CHECK wpk_err wpk_db_restore(const struct wpk_db_options *options,
                                      struct wpk_db_report *report, struct wpk_diag *diag);
/* Forget what is old, but for the best. */
WPK_MUST_CHECK wpk_err wpk_db_prune(const struct wpk_db_options *options,
                                    struct wpk_db_report *report, struct wpk_diag *diag);
/* Write problems, trials and served kernels with their artifacts into `file`; read them from one
 * that another installation wrote. */
WPK_MUST_CHECK wpk_err wpk_db_export(const struct wpk_db_options *options,
                                     struct wpk_db_report *report, struct wpk_diag *diag);
WPK_MUST_CHECK wpk_err wpk_db_import(const struct wpk_db_options *options,
                                     struct wpk_db_report *report, struct wpk_diag *diag);

#endif
