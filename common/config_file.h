/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file: one JSON object, in which // outside a string begins a comment that ends
 * with its line. Otherwise it is read as strictly as every document: a misspelt member or a wrong
 * type is an error with file, line and field. */
#ifndef WPK_COMMON_CONFIG_FILE_H
#define WPK_COMMON_CONFIG_FILE_H

#include "common/json.h"

#define WPK_CONFIG_FILE_SIZE_MAX ((size_t)1 << 20) /* bytes */

/* Read and parse `path`. `diag` names the file from then on, also in failures of the caller's own.
 *
 *   owns    caller closes *reader; `diag` (may be NULL) must live as long as it
 *   errors  those of wpk_fs_read() and wpk_json_open(); WPK_EINVAL no object
 */
WPK_MUST_CHECK wpk_err wpk_config_file_open(const char *path, struct wpk_json_reader **reader,
                                            struct wpk_diag *diag);

/* Blank out the comments of `text` in place, so that lines and columns stay. */
void wpk_config_file_strip(char *text, size_t size);

#endif
