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

/* Append the file: `op` in whole form, then the schedule. */
void wpk_schedule_file_print(const char *op, const char *layouts, const char *schedule,
                             struct wpk_buf *out);

/* Read the operator, layouts and threads of a file. The operator is appended to `op` in whole form.
 * `layouts` and `threads` keep their values if the file does not name them; threads are in the
 * target's line.
 *
 *   errors  WPK_EPARSE  no operator, or layouts that are neither fixed nor any
 */
WPK_MUST_CHECK wpk_err wpk_schedule_file_read(const char *text, struct wpk_buf *op,
                                              const char **layouts, int *threads,
                                              struct wpk_diag *diag);

#endif
