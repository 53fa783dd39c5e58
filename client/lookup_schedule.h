/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a schedule for an operator that was looked up, for wpkctl build. The candidate is that of
 * the operator's served kernel; without one, the best of the nearest shape, lowered for this
 * shape. */
#ifndef WPK_CLIENT_LOOKUP_SCHEDULE_H
#define WPK_CLIENT_LOOKUP_SCHEDULE_H

#include "common/buf.h"
#include "schema/job.h"

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
WPK_MUST_CHECK wpk_err wpk_lookup_schedule(const struct wpk_job *job, int op,
                                           const struct wpk_lookup_found *found,
                                           struct wpk_buf *out, struct wpk_diag *diag);

#endif
