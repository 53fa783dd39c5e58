/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule in a file of its own, to be read, edited and built by hand. Directives do not say what
 * they implement, so comments at the top carry the operator:
 *
 *     #layouts any
 *     #op input X f32[1,128,28,28]
 *     #op ...
 *     wpk-schedule 1
 *     ... */
#ifndef WPK_CLIENT_SCHEDULE_FILE_H
#define WPK_CLIENT_SCHEDULE_FILE_H

#include "common/buf.h"

/* Append the file: `op` in whole form, then the directives. */
void wpk_schedule_file_print(const char *op, const char *layouts, const char *schedule,
                             struct wpk_buf *out);

/* What the comments of `text` say: the operator in whole form, appended to `op`; `layouts` keeps
 * its value unless the file names one; threads come from the target's line, else they stay.
 *
 *   errors  WPK_EPARSE  no operator, or layouts that are neither fixed nor any
 */
WPK_MUST_CHECK wpk_err wpk_schedule_file_read(const char *text, struct wpk_buf *op,
                                              const char **layouts, int *threads,
                                              struct wpk_diag *diag);

#endif
