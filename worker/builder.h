/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of wpk-builder: a zygote that has the code generator loaded and warm, and forks a
 * child for each build. It runs no thread, so that forking is safe, and decides nothing: which core
 * builds when is the engine's affair. */
#ifndef WPK_WORKER_BUILDER_H
#define WPK_WORKER_BUILDER_H

#include "common/err.h"

struct wpk_builder_options {
    /* Objects of prepare programs by their hash, and the parts of every kernel; on the file system
     * where builds happen, because they are linked, not copied. */
    const char *cache_dir;
};

/* Serve WPK_CHANNEL_FD until the engine closes it; returns the process's exit code. */
int wpk_builder_serve(const struct wpk_builder_options *options);

/* Build the current directory's `schedule` and `manifest` into `kernel.so`; what is wrong goes to
 * standard error.
 *   errors  WPK_ENOENT, WPK_ENOSPC, WPK_EIO, WPK_EACCES, WPK_EBUSY, WPK_ESYSTEM the machine's
 *           fault; others the schedule's (WPK_ENOMEM too: a child's memory is bounded) */
wpk_err wpk_builder_build(const struct wpk_builder_options *options);

#endif
