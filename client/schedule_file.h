/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule in a file, which people read, edit and build. A nest does not say what it
 * implements, so comments at the top carry the operator:
 *
 *     #layouts any
 *     #op input X f32[1,128,28,28]
 *     #op ...
 *     wpk-schedule 2
 *     ... */
#ifndef WPK_CLIENT_SCHEDULE_FILE_H
#define WPK_CLIENT_SCHEDULE_FILE_H

#include "common/buf.h"
#include "schema/job.h"

/* Append the file: `op` in whole form, then the schedule. */
void wpk_schedule_file_print(const char *op, const char *layouts, const char *schedule,
                             struct wpk_buf *out);

/* Read the operator, layouts and threads of a file. The operator is appended to `op` in whole form.
 * `layouts` and `threads` keep their values if the file does not name them; threads are in the
 * target's line.
 *
 *   errors  WPK_EPARSE  no operator, or layouts that are neither fixed nor any
 */
wpk_err wpk_schedule_file_read(const char *text, struct wpk_buf *op, const char **layouts,
                               int *threads, struct wpk_diag *diag);

/* Makes a schedule for an operator that was looked up, for wpkctl build. The candidate is that of
 * the operator's served kernel; without one, the best of the nearest shape, lowered for this
 * shape. */

/* The part of a match that a schedule is made from. */
struct wpk_lookup_found {
    const char *device;    /* class */
    const char *candidate; /* genes as text, of this or the nearest shape; "": a vendor's */
    enum wpk_layouts layouts;
    int threads;
};

/* Append a file that wpk_schedule_file_read understands.
 *   errors  WPK_EMISMATCH the candidate is not legal on this shape; WPK_ENOENT the match is a
 *           vendor's, without a candidate; those of wpk_space_derive and wpk_lower */
wpk_err wpk_lookup_schedule(const struct wpk_job *job, int op, const struct wpk_lookup_found *found,
                            struct wpk_buf *out, struct wpk_diag *diag);

#endif
