/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file may be written, asked before the work whose result it keeps. */
#ifndef WPK_COMMON_OUTPUT_PATH_H
#define WPK_COMMON_OUTPUT_PATH_H

#include "common/err.h"

/* Check that `path` can be created or replaced by wpk_fs_write, and that it is no file of a
 * history. "-" and streams (common/fs.h) always can. The check creates no file.
 *
 *   errors  WPK_EINVAL  "", a directory, a missing directory, or a history's file
 *           WPK_EACCES, WPK_ESYSTEM  the directory does not permit it
 */
WPK_MUST_CHECK wpk_err wpk_output_path_check(const char *path, struct wpk_diag *diag);

/* Check that `path` is not the file `input`, by whatever name. Streams are no file.
 *   errors  WPK_EINVAL */
WPK_MUST_CHECK wpk_err wpk_output_path_differs(const char *path, const char *input,
                                               struct wpk_diag *diag);

#endif
