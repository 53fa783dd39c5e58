/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a client of common/net.h: one connection to a server. Not for anybody else.
 *
 *     [DIALLING] ──▶ [GREETING] ── 8 bytes each way ──▶ [OPEN] ── head, body, head, body ...
 *
 * The library's callbacks only say that a step is over, and signal; everything else is one
 * thread's, which goes on from there, and may wait for the library.
 *
 * Two receives are under way at a time, so that one always is: what ends a connection while none
 * is, NNG 1.5.2 keeps to itself, and whatever is asked afterwards never ends. */
#ifndef WPK_COMMON_NET_LINE_H
#define WPK_COMMON_NET_LINE_H

#include "common/net_dial.h"
#include "common/net_frame.h"

#include <pthread.h>

#define WPK_NET_LINE_RECEIVES 2
#define WPK_NET_LINE_INPUT_MAX 32768 /* bytes received at a time */

enum wpk_net_line_state {
    WPK_NET_LINE_CLOSED,
    WPK_NET_LINE_DIALLING,
    WPK_NET_LINE_GREETING,
    WPK_NET_LINE_OPEN,
};

struct wpk_net_line;

struct wpk_net_step { /* something asked of the library */
    struct wpk_net_line *line;
    nng_aio *aio;
    bool is_over; /* guarded by the line's lock */
};

struct wpk_net_line {
    const struct wpk_net_client_options *options; /* borrowed, as what follows */
    pthread_mutex_t *lock;
    pthread_cond_t *changed; /* signalled when a step is over */
    bool is_local;
    enum wpk_net_line_state state;
    nng_stream_dialer *dialer;
    nng_stream *stream;
    struct wpk_net_step send; /* and dialling */
    bool is_sending;
    struct wpk_net_step receive[WPK_NET_LINE_RECEIVES];
    int turn; /* the receive that comes next; they end in the order of their beginning */
    const char *input; /* of it, not read yet */
    size_t input_size;
    char *frame; /* being sent; owned */
    size_t frame_size;
    size_t sent;
    char head[WPK_NET_HEAD_MAX]; /* of a message; the greeting at first */
    uint32_t number;             /* of the message whose body comes */
    char *body;                  /* owned; NULL: the head comes first */
    size_t wanted;               /* bytes of what comes, and how many are there */
    size_t got;
    char inputs[WPK_NET_LINE_RECEIVES][WPK_NET_LINE_INPUT_MAX];
};

enum wpk_net_line_news { WPK_NET_LINE_NOTHING, WPK_NET_LINE_MESSAGE, WPK_NET_LINE_LOST };

/* A request as it goes out. NULL without memory.   owns  caller frees */
char *wpk_net_line_frame(bool is_local, uint32_t number, const void *data, size_t size,
                         size_t *frame_size);

/* Begin to connect; false when it cannot even begin. To be closed in either case. */
bool wpk_net_line_open(struct wpk_net_line *line, const struct wpk_net_client_options *options,
                       pthread_mutex_t *lock, pthread_cond_t *changed);
/* Waits for the library's callbacks; `lock` must be free. */
void wpk_net_line_close(struct wpk_net_line *line);

/* Is a step over, so that it can go on? Under the lock. */
bool wpk_net_line_is_ready(const struct wpk_net_line *line);
/* Go on after what is over, until a message is here or there is nothing to do. LOST: the connection
 * ended, or was refused, or talks nonsense.
 *   owns  MESSAGE: caller frees *data, which a zero follows */
enum wpk_net_line_news wpk_net_line_next(struct wpk_net_line *line, uint32_t *number, char **data,
                                         size_t *size);

/* Open, and nothing is being sent. */
bool wpk_net_line_is_idle(const struct wpk_net_line *line);
/* Takes `frame`; only when idle. */
void wpk_net_line_send(struct wpk_net_line *line, char *frame, size_t frame_size);

#endif
