/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file: one JSON object, in which // outside a string begins a comment that ends
 * with its line. Otherwise as strict as every document: what is misspelt or of another type is an
 * error with file, line and field, never ignored. */
#ifndef WPK_COMMON_CONFIG_FILE_H
#define WPK_COMMON_CONFIG_FILE_H

#include "common/json.h"

#define WPK_CONFIG_FILE_SIZE_MAX ((size_t)1 << 20) /* bytes */

/* Read and parse `path`; `diag` names it from here on, for what the caller finds wrong too.
 *
 *   owns    caller closes *reader; `diag` (may be NULL) must live as long as it
 *   errors  what wpk_fs_read() and wpk_json_open() say; WPK_EINVAL no object
 */
WPK_MUST_CHECK wpk_err wpk_config_file_open(const char *path, struct wpk_json_reader **reader,
                                            struct wpk_diag *diag);

/* Blank out the comments of `text` in place, so that lines and columns stay. */
void wpk_config_file_strip(char *text, size_t size);

#endif
