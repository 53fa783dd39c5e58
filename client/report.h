/* SPDX-License-Identifier: Apache-2.0 */
/* Reports what a job found, for people and for programs. */
#ifndef WPK_CLIENT_REPORT_H
#define WPK_CLIENT_REPORT_H

#include "client/output.h"
#include "schema/answer.h"

/* Append the path of the artifact with this hash in a data directory. */
void wpk_report_artifact_path(const char *data_dir, const char *sha256, struct wpk_buf *out);

/* Write a kernel's error: "1.1e-06 of rms, 1.8x direct"; "-" if it was not measured.
 *   shape  out [WPK_REPORT_ERROR_SIZE] */
#define WPK_REPORT_ERROR_SIZE 64
void wpk_report_error(const struct wpk_api_kernel *kernel, char *out);
/* True if the time is too uncertain to compare with: its MAD is above a tenth of its median. */
bool wpk_report_is_noisy(const struct wpk_api_time *time);

/* Append a table of the job's kernels with the details of each. If `data_dir` is NULL, hashes stand
 * for paths.   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_report_print(const struct wpk_api_job *job, const char *data_dir,
                                        const struct wpk_output *output, struct wpk_arena *arena,
                                        struct wpk_buf *out);

/* Append {"kernels":[...],"seconds":...}, as docs/cli.md defines it.   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_report_encode(const struct wpk_api_job *job, const char *data_dir,
                                         struct wpk_buf *out);

#endif
