/* SPDX-License-Identifier: Apache-2.0 */
/* The output forms of a command: a table that fits the terminal, the whole table, JSON or CSV. */
#ifndef WPK_CLIENT_OUTPUT_H
#define WPK_CLIENT_OUTPUT_H

#include "common/args.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/format.h"
#include "schema/answer.h"

/* The form that options set; `= {0}` is a table that fits the terminal. */
struct wpk_output {
    const char *format; /* value of -o; NULL: not given */
    bool json;
    bool brief; /* of a report: the table alone; set by the command */
};

#define WPK_OUTPUT_OPTION_ROWS(output)                                                             \
    WPK_ARGS_ROW("output", 'o', "wide|json|csv",                                                   \
                 "every column, JSON or CSV; default: what fits the terminal", TEXT,               \
                 &(output).format, 0, 0),                                                          \
        WPK_ARGS_FLAG("json", "the same as -o json", &(output).json)

/* Set `json` if -o is json.   errors  WPK_EINVAL  -o names no format */
wpk_err wpk_output_check(struct wpk_output *output, struct wpk_diag *diag);

/* Columns of the terminal behind a descriptor; 0: not a terminal, so any width fits. */
int wpk_output_width(int fd);

/* Append the table in the form that the options name. The caller writes JSON itself. */
void wpk_output_table(const struct wpk_output *output, const struct wpk_text_table *table,
                      struct wpk_buf *out);
/* The same to standard output.   errors  WPK_ENOMEM */
wpk_err wpk_output_puts_table(const struct wpk_output *output, const struct wpk_text_table *table);

/* Reports what a job found, for people and for programs. */

/* Write a kernel's error: "1.1e-06 of rms, 1.8x direct"; "-" if it was not measured.
 *   shape  out [WPK_REPORT_ERROR_SIZE] */
#define WPK_REPORT_ERROR_SIZE 64
void wpk_report_error(const struct wpk_api_kernel *kernel, char *out);
/* True if the time is too uncertain to compare with: its MAD is above a tenth of its median. */
bool wpk_report_is_noisy(const struct wpk_api_time *time);

/* Append a table of the job's kernels with the details of each. If `data_dir` is NULL, hashes stand
 * for paths.   errors  WPK_ENOMEM */
wpk_err wpk_report_print(const struct wpk_api_job *job, const char *data_dir,
                         const struct wpk_output *output, struct wpk_arena *arena,
                         struct wpk_buf *out);

/* Append {"kernels":[...],"seconds":...}, as docs/cli.md defines it.   errors  WPK_ENOMEM */
wpk_err wpk_report_encode(const struct wpk_api_job *job, const char *data_dir, struct wpk_buf *out);

#endif
