/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of wpk-builder: a process that has loaded and warmed the code generator, and forks a
 * child for each build. It starts no thread, so that forking is safe. The engine decides which core
 * builds when. */
#ifndef WPK_WORKER_BUILDER_BUILDER_H
#define WPK_WORKER_BUILDER_BUILDER_H

#include "common/err.h"

struct wpk_builder_options {
    /* Directory of the objects of prepare programs, by hash, and of the object that all kernels
     * share; on the file system of the builds, because files are hard-linked, not copied. */
    const char *cache_dir;
};

/* Serve WPK_CHANNEL_FD until the engine closes it; returns the process's exit code. */
int wpk_builder_serve(const struct wpk_builder_options *options);

/* Build the current directory's `schedule` and `manifest` into `kernel.so`; write the reason of a
 * failure to standard error.
 *   errors  WPK_ENOENT, WPK_ENOSPC, WPK_EIO, WPK_EACCES, WPK_EBUSY, WPK_ESYSTEM: the machine is at
 *           fault; others: the schedule is (WPK_ENOMEM too: a child's memory is bounded; and
 *           WPK_EUNSUPPORTED: this machine never had a compiler for it) */
wpk_err wpk_builder_build(const struct wpk_builder_options *options);

#endif
