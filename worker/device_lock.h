/* SPDX-License-Identifier: Apache-2.0 */
/* One worker at a time uses a machine's device for timing, whoever started it.
 *
 *      free ──take──▶ held ──give──▶ free
 *       └───take, and another holds it ──▶ waiting ──the holder gives it or dies──▶ take again
 *
 * The lock is a name among the abstract Unix sockets: bound by one process, gone with it even by
 * kill -9, the same for every user and for services that see a /tmp and a /run of their own. A file
 * would belong to whoever came first. Who waits is connected to who holds, and is hung up on:
 * nobody polls, on cores that are being timed. The name is per network namespace: containers with
 * networks of their own must not share cores. Whoever may run programs here may hold it for ever;
 * he could disturb every timing as well.
 *
 * Only timing is exclusive: builds of another worker go on, also on the core that is timed. */
#ifndef WPK_WORKER_DEVICE_LOCK_H
#define WPK_WORKER_DEVICE_LOCK_H

#include "common/err.h"

struct wpk_device_lock {
    const char *name; /* borrowed; of the device */
    int held_fd;      /* -1: not held */
    int wait_fd;      /* readable when it is worth another try; -1: nobody to wait for */
};

void wpk_device_lock_init(struct wpk_device_lock *lock, const char *name);

/* Never blocks; fine when it is held already.
 *   errors  WPK_EBUSY    somebody else holds it: wait for wait_fd, or a moment where that is -1
 *           WPK_ESYSTEM  there are no local sockets here */
WPK_MUST_CHECK wpk_err wpk_device_lock_take(struct wpk_device_lock *lock);
/* Give it back, or wait no longer. */
void wpk_device_lock_give(struct wpk_device_lock *lock);

#endif
