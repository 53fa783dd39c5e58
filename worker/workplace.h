/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for a worker's temporary files: BASE/wpk-worker-UID/XXXXXX, locked while in use. What
 * workers left behind that were killed is removed by the next one. */
#ifndef WPK_WORKER_WORKPLACE_H
#define WPK_WORKER_WORKPLACE_H

#include "common/err.h"

#define WPK_WORKPLACE_PATH_MAX 1024

/* `= {0}` is a closed one. */
struct wpk_workplace {
    char path[WPK_WORKPLACE_PATH_MAX];
    int lock_fd; /* of path/lock */
};

/*   owns    caller closes
 *   errors  WPK_EACCES, WPK_ENOSPC, WPK_ERANGE path too long, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_workplace_open(const char *base, struct wpk_workplace *out,
                                          struct wpk_diag *diag);
/* Removes the directory with all in it. */
void wpk_workplace_close(struct wpk_workplace *place);

#endif
