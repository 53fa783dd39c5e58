/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine/engine_state.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TRIES_MAX 4 /* at holders that are gone before they can be waited for */
#define BACKLOG 128 /* who waits; the others look again after a moment */

void wpk_device_lock_init(struct wpk_device_lock *lock, const char *name)
{
    *lock = (struct wpk_device_lock){.name = name, .held_fd = -1, .wait_fd = -1};
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static socklen_t fill_address(const struct wpk_device_lock *lock, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* Abstract: the first byte is NUL, and the length says where the name ends. */
    int size =
        snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "woodpecker-device-%s", lock->name);
    WPK_ASSERT(size > 0 && (size_t)size < sizeof out->sun_path - 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static wpk_err bind_name(struct wpk_device_lock *lock)
{
    struct sockaddr_un address;
    socklen_t size = fill_address(lock, &address);
    int fd = open_socket();
    if (fd < 0) {
        return WPK_ESYSTEM;
    }
    if (bind(fd, (const struct sockaddr *)&address, size) == 0 && listen(fd, BACKLOG) == 0) {
        lock->held_fd = fd;
        return WPK_OK;
    }
    wpk_err err = errno == EADDRINUSE ? WPK_EBUSY : WPK_ESYSTEM;
    close(fd);
    return err;
}

/* Connect to the holder, who never answers; false when there is none any more. */
static bool wait_for_holder(struct wpk_device_lock *lock)
{
    struct sockaddr_un address;
    socklen_t size = fill_address(lock, &address);
    int fd = open_socket();
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, size) == 0) {
        lock->wait_fd = fd;
        return true;
    }
    bool gone = fd >= 0 && errno == ECONNREFUSED;
    close_fd(&fd);
    return !gone;
}

wpk_err wpk_device_lock_take(struct wpk_device_lock *lock)
{
    WPK_ASSERT(lock->name != NULL);
    if (lock->held_fd >= 0) {
        return WPK_OK;
    }
    struct pollfd polled = {.fd = lock->wait_fd, .events = POLLIN};
    if (lock->wait_fd >= 0 && poll(&polled, 1, 0) == 0) { /* it is still held */
        return WPK_EBUSY;
    }
    close_fd(&lock->wait_fd);
    for (int i = 0; i < TRIES_MAX; i++) {
        wpk_err err = bind_name(lock);
        if (err != WPK_EBUSY || wait_for_holder(lock)) {
            return err;
        }
    }
    return WPK_EBUSY;
}

void wpk_device_lock_give(struct wpk_device_lock *lock)
{
    close_fd(&lock->held_fd);
    close_fd(&lock->wait_fd);
}
