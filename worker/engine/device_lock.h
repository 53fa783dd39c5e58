/* SPDX-License-Identifier: Apache-2.0 */
/* A lock by which the workers of one machine time on a device in turns, whichever user runs them.
 *
 *      free ──take──▶ held ──give──▶ free
 *       └───take, and another holds it ──▶ waiting ──the holder gives it or dies──▶ take again
 *
 * The lock is an abstract Unix socket's name. One process binds it, and it ends with that process,
 * even by kill -9. Every user sees the same name, and so do services with a private /tmp and /run;
 * a lock file would belong to its first user. A waiting process connects to the holder and notices
 * the end of the connection, so that no process polls beside a timing. The name is one per network
 * namespace: containers with networks of their own must not share cores. A local user who keeps the
 * lock stops all timing, but such a user could disturb it with any busy program as well.
 *
 * Only timing is exclusive: builds of another worker go on, also on a core that is being timed. */
#ifndef WPK_WORKER_ENGINE_DEVICE_LOCK_H
#define WPK_WORKER_ENGINE_DEVICE_LOCK_H

#include "common/err.h"

struct wpk_device_lock {
    const char *name; /* borrowed; of the device */
    int held_fd;      /* -1: not held */
    int wait_fd;      /* connection to the holder, readable when it ends; -1: none */
};

void wpk_device_lock_init(struct wpk_device_lock *lock, const char *name);

/* Take the lock without blocking; WPK_OK if this lock is held already.
 *   errors  WPK_EBUSY    another process has it: wait for wait_fd, or a moment where that is -1
 *           WPK_ESYSTEM  there are no local sockets here */
WPK_MUST_CHECK wpk_err wpk_device_lock_take(struct wpk_device_lock *lock);
/* Release the lock, or stop waiting for it. */
void wpk_device_lock_give(struct wpk_device_lock *lock);

#endif
