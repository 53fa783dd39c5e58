/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of files that are worth keeping and can be had again: artifacts by their hash,
 * answers, prepared objects. What was written first goes first. */
#ifndef WPK_WORKER_CACHE_H
#define WPK_WORKER_CACHE_H

#include "common/err.h"

#include <stdint.h>

#define WPK_CACHE_FILES_MAX 16384 /* looked at in one directory */

struct wpk_cache_limits {
    uint32_t files_max;
    uint64_t bytes_max;
};

/* Is this file, by its name, needed now? */
typedef bool (*wpk_cache_needs)(const void *user, const char *name);

/* Remove files that end in `suffix` until the rest keeps to the limits; those that are needed stay,
 * and count. Returns how many went. A directory that cannot be read has none.
 *   owns  `needs` may be NULL */
uint32_t wpk_cache_trim(const char *directory, const char *suffix,
                        const struct wpk_cache_limits *limits, wpk_cache_needs needs,
                        const void *user);

#endif
