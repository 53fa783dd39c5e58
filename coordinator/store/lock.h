/* SPDX-License-Identifier: Apache-2.0 */
/* One process works on a data directory: wpkd, or a tool that changes it. The lock goes with the
 * process, however it ends. */
#ifndef WPK_COORDINATOR_STORE_LOCK_H
#define WPK_COORDINATOR_STORE_LOCK_H

#include "common/err.h"

/* Make the directory if it is not there, and take it.
 *
 *   owns    the caller closes *fd, which gives the lock back
 *   errors  WPK_EBUSY another process has it, with its pid in `diag`; WPK_EACCES, WPK_ENOSPC,
 *           WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_lock_take(const char *directory, int *fd, struct wpk_diag *diag);

#endif
