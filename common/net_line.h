/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a client of common/net.h to its server, for the files of net.h alone.
 *
 *     [DIALLING] ──▶ [GREETING] ── 8 bytes each way ──▶ [OPEN] ── head, body, head, body ...
 *
 * The library's callbacks only mark a step as over, and signal. One thread does everything else,
 * and may wait for the library.
 *
 * Two receives are under way, so that there is always one. If a connection ends while there is
 * none, NNG 1.5.2 does not report the end, and later operations on it never complete. */
#ifndef WPK_COMMON_NET_LINE_H
#define WPK_COMMON_NET_LINE_H

#include "common/net_dial.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wpk_net_line;

/* The wire format between the two sides of common/net.h, for its files and bench/open_loop.c.
 *
 * It is a subset of NNG's request/reply. Each side greets in eight bytes. A message is its size in
 * eight bytes (after a byte 1 over ipc), the request's number in four, and the data; the size
 * counts the number. The number's first bit is set, and the reply repeats the number. */

#define WPK_NET_GREETING_SIZE 8
#define WPK_NET_HEAD_MAX 13 /* bytes */
#define WPK_NET_NUMBER_FIRST UINT32_C(0x80000000)

/* The greetings of the client, which asks, and of the server, which answers. */
extern const char wpk_net_greeting_asks[WPK_NET_GREETING_SIZE];
extern const char wpk_net_greeting_answers[WPK_NET_GREETING_SIZE];

struct wpk_net_head {
    uint32_t number;
    size_t size; /* bytes of the message, without its number */
};

/* The size of a head in bytes. */
size_t wpk_net_head_size(bool is_local);
/* Write a head.   shape  at [WPK_NET_HEAD_MAX]
 * Returns the number of bytes written; the data follows them. */
size_t wpk_net_head_write(const struct wpk_net_head *head, bool is_local, char *at);
/* Read a head.   shape  at [wpk_net_head_size(is_local)]
 * False: not a head, or data of more than `size_max` bytes. A number without its first bit comes
 * from an NNG device, of which there is none here. */
bool wpk_net_head_read(const char *at, bool is_local, size_t size_max, struct wpk_net_head *out);

#define WPK_NET_LINE_RECEIVES 2
#define WPK_NET_LINE_INPUT_MAX 32768 /* bytes received at a time */

enum wpk_net_line_state {
    WPK_NET_LINE_CLOSED,
    WPK_NET_LINE_DIALLING,
    WPK_NET_LINE_GREETING,
    WPK_NET_LINE_OPEN,
};

struct wpk_net_step { /* an operation of the library */
    struct wpk_net_line *line;
    nng_aio *aio;
    bool is_over; /* guarded by the line's lock */
};

struct wpk_net_line {
    const struct wpk_net_client_options *options; /* borrowed, like the next two */
    pthread_mutex_t *lock;
    pthread_cond_t *changed; /* signalled when a step is over */
    bool is_local;
    enum wpk_net_line_state state;
    nng_stream_dialer *dialer;
    nng_stream *stream;
    struct wpk_net_step send; /* also for dialling */
    bool is_sending;
    struct wpk_net_step receive[WPK_NET_LINE_RECEIVES];
    int turn;    /* the receive that ends next; they end in the order in which they began */
    wpk_err err; /* why the line is LOST */
    struct wpk_diag diag; /* what to do about it */
    const char *input;    /* bytes of that receive that were not read yet */
    size_t input_size;
    char *frame; /* the request being sent; owned */
    size_t frame_size;
    size_t sent;
    char head[WPK_NET_HEAD_MAX]; /* of a message; the greeting at first */
    uint32_t number;             /* of the message whose body is received */
    char *body;                  /* owned; NULL: a head is received */
    size_t wanted;               /* bytes of the greeting, head or body that is received */
    size_t got;                  /* of `wanted`, those that arrived */
    char inputs[WPK_NET_LINE_RECEIVES][WPK_NET_LINE_INPUT_MAX];
};

/* LOST: line->err says why */
enum wpk_net_line_news { WPK_NET_LINE_NOTHING, WPK_NET_LINE_MESSAGE, WPK_NET_LINE_LOST };

/* Make a request's frame. NULL without memory.   owns  caller frees */
char *wpk_net_line_frame(bool is_local, uint32_t number, const void *data, size_t size,
                         size_t *frame_size);

/* Begin to connect; false when that fails at once, and line->err says why. The line has to be
 * closed in either case. */
bool wpk_net_line_open(struct wpk_net_line *line, const struct wpk_net_client_options *options,
                       pthread_mutex_t *lock, pthread_cond_t *changed);
/* Close the connection. Waits for the library's callbacks; `lock` must be free. */
void wpk_net_line_close(struct wpk_net_line *line);

/* True if a step is over, so that wpk_net_line_next() can go on. Under the lock. */
bool wpk_net_line_is_ready(const struct wpk_net_line *line);
/* Continue after steps that are over, until a message has arrived or nothing is left to do. LOST:
 * the connection ended, was refused or broke the protocol.
 *   owns  MESSAGE: caller frees *data, which ends with an extra zero byte */
enum wpk_net_line_news wpk_net_line_next(struct wpk_net_line *line, uint32_t *number, char **data,
                                         size_t *size);

/* True if the connection is open and nothing is being sent. */
bool wpk_net_line_is_idle(const struct wpk_net_line *line);
/* Send `frame`, and take it. The line must be idle. */
void wpk_net_line_send(struct wpk_net_line *line, char *frame, size_t frame_size);

#endif
