/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for a worker's temporary files: BASE/wpk-worker-UID/XXXXXX, locked while in use. The
 * next worker of this user removes the directories of workers that were killed. */
#ifndef WPK_WORKER_SESSION_WORKPLACE_H
#define WPK_WORKER_SESSION_WORKPLACE_H

#include "common/err.h"

#include <stdint.h>

#define WPK_WORKPLACE_PATH_MAX 1024

/* = {0} is closed. */
struct wpk_workplace {
    char path[WPK_WORKPLACE_PATH_MAX];
    int lock_fd; /* of path/lock */
};

/* Remove directories left behind, then make one.
 *   owns    caller calls wpk_workplace_close
 *   errors  WPK_EACCES, WPK_ENOSPC, WPK_ERANGE path too long, WPK_EIO */
wpk_err wpk_workplace_open(const char *base, struct wpk_workplace *out, struct wpk_diag *diag);
/* Remove the directory with all its files, and unlock it. */
void wpk_workplace_close(struct wpk_workplace *place);

/* Directories of files that can be fetched or made again: artifacts, answers, prepared objects. The
 * oldest files, by the time they were written, are removed first. */

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
