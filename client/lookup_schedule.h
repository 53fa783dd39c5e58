/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule for the very operator that was looked up, for wpkctl build: what is served of it, or
 * what was best on the nearest shape, lowered for this one. */
#ifndef WPK_CLIENT_LOOKUP_SCHEDULE_H
#define WPK_CLIENT_LOOKUP_SCHEDULE_H

#include "common/buf.h"
#include "schema/job.h"

/* What the match says. */
struct wpk_lookup_found {
    const char *device;    /* class */
    const char *candidate; /* genes as text, of this shape or of the nearest one */
    enum wpk_layouts layouts;
    int threads;
};

/* Append a file that wpk_schedule_file_read understands.
 *   errors  WPK_EMISMATCH the candidate is not legal on this shape; WPK_ENOENT there is none: a
 *           vendor's; of wpk_space_derive and wpk_lower */
WPK_MUST_CHECK wpk_err wpk_lookup_schedule(const struct wpk_job *job, int op,
                                           const struct wpk_lookup_found *found,
                                           struct wpk_buf *out, struct wpk_diag *diag);

#endif
