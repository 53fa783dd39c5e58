/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for a worker's temporary files: BASE/wpk-worker-UID/XXXXXX, locked while in use. The
 * next worker of this user removes the directories of workers that were killed. */
#ifndef WPK_WORKER_SESSION_WORKPLACE_H
#define WPK_WORKER_SESSION_WORKPLACE_H

#include "common/err.h"

#define WPK_WORKPLACE_PATH_MAX 1024

/* = {0} is closed. */
struct wpk_workplace {
    char path[WPK_WORKPLACE_PATH_MAX];
    int lock_fd; /* of path/lock */
};

/* Remove directories left behind, then make one.
 *   owns    caller calls wpk_workplace_close
 *   errors  WPK_EACCES, WPK_ENOSPC, WPK_ERANGE path too long, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_workplace_open(const char *base, struct wpk_workplace *out,
                                          struct wpk_diag *diag);
/* Remove the directory with all its files, and unlock it. */
void wpk_workplace_close(struct wpk_workplace *place);

#endif
