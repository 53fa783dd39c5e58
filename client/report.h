/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tuning: what was found, for people and for programs. */
#ifndef WPK_CLIENT_REPORT_H
#define WPK_CLIENT_REPORT_H

#include "client/api.h"
#include "client/output.h"

/* Where a kernel with this hash lies in a data directory, appended to `out`. */
void wpk_report_artifact_path(const char *data_dir, const char *sha256, struct wpk_buf *out);

/* Is the time too uncertain to compare with: its MAD above a tenth of it? */
/* A kernel's error: "1.1e-06 of rms, 1.8x direct"; "-" where it was not measured.
 *   shape  out [WPK_REPORT_ERROR_SIZE] */
#define WPK_REPORT_ERROR_SIZE 64
void wpk_report_error(const struct wpk_api_kernel *kernel, char *out);
bool wpk_report_is_noisy(const struct wpk_api_time *time);

/* A table of the job's kernels with what each consists of; lines end in newlines. `data_dir` may be
 * NULL: then hashes stand for paths. */
WPK_MUST_CHECK wpk_err wpk_report_print(const struct wpk_api_job *job, const char *data_dir,
                                        const struct wpk_output *output, struct wpk_arena *arena,
                                        struct wpk_buf *out);

/* {"kernels":[...],"seconds":...}, as docs/cli.md says.   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_report_encode(const struct wpk_api_job *job, const char *data_dir,
                                         struct wpk_buf *out);

#endif
