/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a socket pair between the engine and the programs it starts.
 *
 * A message is JSON text after its size in four bytes. Each end trusts the other's messages, but
 * expects that the other may die: its death is WPK_ECLOSED, never a signal. */
#ifndef WPK_WORKER_CHANNEL_H
#define WPK_WORKER_CHANNEL_H

#include "common/buf.h"

#define WPK_CHANNEL_FD 3                           /* a started program's end */
#define WPK_CHANNEL_MESSAGE_MAX ((size_t)16 << 20) /* bytes */

/* = {.fd = -1} is closed. */
struct wpk_channel {
    int fd;
    struct wpk_buf in; /* received and not yet taken */
};

void wpk_channel_init(struct wpk_channel *channel, int fd);
/* Free the buffer and close the descriptor. */
void wpk_channel_fini(struct wpk_channel *channel);

/* Send one message; wait up to 5 s while the other end reads nothing.
 *   errors  WPK_ECLOSED, WPK_ETIMEDOUT, WPK_ESYSTEM */
wpk_err wpk_channel_send(struct wpk_channel *channel, const char *text, size_t size);

/* Move the next whole message into `out`, which is reset first, without waiting.
 *   errors  WPK_ENOENT   no whole message has arrived
 *           WPK_ECLOSED, WPK_ESYSTEM, WPK_ECORRUPT (longer than WPK_CHANNEL_MESSAGE_MAX) */
wpk_err wpk_channel_receive(struct wpk_channel *channel, struct wpk_buf *out);

/* The same, but wait for it as long as it takes.   errors  the others of wpk_channel_receive */
wpk_err wpk_channel_wait(struct wpk_channel *channel, struct wpk_buf *out);

#endif
