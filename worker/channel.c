/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/process.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEND_WAIT_MS 5000
#define READ_SIZE 65536 /* bytes asked for at once */

void wpk_channel_init(struct wpk_channel *channel, int fd)
{
    channel->fd = fd;
    wpk_buf_init(&channel->in, 2 * WPK_CHANNEL_MESSAGE_MAX);
}

void wpk_channel_fini(struct wpk_channel *channel)
{
    if (channel->fd >= 0) {
        close(channel->fd);
    }
    channel->fd = -1;
    wpk_buf_fini(&channel->in);
}

static wpk_err send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
            continue;
        }
        if (errno == EINTR) {
            continue;
        }
        if (errno != EAGAIN) {
            return errno == EPIPE || errno == ECONNRESET ? WPK_ECLOSED : WPK_ESYSTEM;
        }
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        if (poll(&wait, 1, SEND_WAIT_MS) == 0) {
            return WPK_ETIMEDOUT;
        }
    }
    return WPK_OK;
}

wpk_err wpk_channel_send(struct wpk_channel *channel, const char *text, size_t size)
{
    WPK_ASSERT(size <= WPK_CHANNEL_MESSAGE_MAX);
    if (channel->fd < 0) {
        return WPK_ECLOSED;
    }
    uint32_t head = (uint32_t)size;
    wpk_err err = send_all(channel->fd, (const char *)&head, sizeof(head));
    return err != WPK_OK ? err : send_all(channel->fd, text, size);
}

/* Take one message out of what has arrived. */
static wpk_err take_message(struct wpk_channel *channel, struct wpk_buf *out)
{
    uint32_t size = 0;
    if (channel->in.size < sizeof(size)) {
        return WPK_ENOENT;
    }
    memcpy(&size, channel->in.data, sizeof(size));
    if (size > WPK_CHANNEL_MESSAGE_MAX) {
        return WPK_ECORRUPT;
    }
    if (channel->in.size - sizeof(size) < size) {
        return WPK_ENOENT;
    }
    wpk_buf_reset(out);
    wpk_buf_append(out, channel->in.data + sizeof(size), size);
    size_t rest = channel->in.size - sizeof(size) - size;
    memmove(channel->in.data, channel->in.data + sizeof(size) + size, rest);
    wpk_buf_truncate(&channel->in, rest);
    return wpk_buf_status(out);
}

wpk_err wpk_channel_receive(struct wpk_channel *channel, struct wpk_buf *out)
{
    if (channel->fd < 0) {
        return WPK_ECLOSED;
    }
    for (;;) {
        wpk_err err = take_message(channel, out);
        if (err != WPK_ENOENT) {
            return err;
        }
        char *room = wpk_buf_reserve(&channel->in, READ_SIZE);
        if (room == NULL) {
            return WPK_ENOMEM;
        }
        ssize_t got = recv(channel->fd, room, READ_SIZE, MSG_DONTWAIT);
        if (got > 0) {
            wpk_buf_commit(&channel->in, (size_t)got);
        } else if (got == 0) {
            return WPK_ECLOSED;
        } else if (errno == EAGAIN) {
            return WPK_ENOENT;
        } else if (errno != EINTR) {
            return errno == ECONNRESET ? WPK_ECLOSED : WPK_ESYSTEM;
        }
    }
}

wpk_err wpk_channel_wait(struct wpk_channel *channel, struct wpk_buf *out)
{
    wpk_err err = wpk_channel_receive(channel, out);
    while (err == WPK_ENOENT) {
        struct pollfd polled = {.fd = channel->fd, .events = POLLIN};
        poll(&polled, 1, -1);
        err = wpk_channel_receive(channel, out);
    }
    return err;
}
