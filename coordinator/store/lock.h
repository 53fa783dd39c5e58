/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a data directory: only one process changes it, wpkd or a tool. The lock ends with its
 * process, however that ends. */
#ifndef WPK_COORDINATOR_STORE_LOCK_H
#define WPK_COORDINATOR_STORE_LOCK_H

#include "common/err.h"

/* Create the directory unless it exists, and lock it.
 *
 *   owns    the caller closes *fd, which releases the lock
 *   errors  WPK_EBUSY another process has it, with its pid in `diag`; WPK_EACCES, WPK_ENOSPC,
 *           WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_lock_take(const char *directory, int *fd, struct wpk_diag *diag);

#endif
