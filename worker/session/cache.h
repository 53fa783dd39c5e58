/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of files that can be fetched or made again: artifacts, answers, prepared objects. The
 * oldest files, by the time they were written, are removed first. */
#ifndef WPK_WORKER_SESSION_CACHE_H
#define WPK_WORKER_SESSION_CACHE_H

#include "common/err.h"

#include <stdint.h>

#define WPK_CACHE_FILES_MAX 16384 /* files of one directory that are looked at */

struct wpk_cache_limits {
    uint32_t files_max;
    uint64_t bytes_max;
};

/* True if the file of this name is needed now. */
typedef bool (*wpk_cache_needs)(const void *user, const char *name);

/* Remove files that end in `suffix` until the rest is within the limits. Needed files stay, and
 * count. Returns the number of files removed; 0 for a directory that cannot be read. `needs` NULL:
 * no file is needed. */
uint32_t wpk_cache_trim(const char *directory, const char *suffix,
                        const struct wpk_cache_limits *limits, wpk_cache_needs needs,
                        const void *user);

#endif
