/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over the wire between the two sides of common/net.h; not for anybody else.
 *
 * It is NNG's request/reply, of which little is needed: each side greets in eight bytes; after that
 * a message is its size in eight bytes (after a byte 1 over ipc), and the request's number in four,
 * which counts as its first part. The number's first bit is set, and the reply repeats it. */
#ifndef WPK_COMMON_NET_FRAME_H
#define WPK_COMMON_NET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WPK_NET_GREETING_SIZE 8
#define WPK_NET_HEAD_MAX 13 /* bytes */
#define WPK_NET_NUMBER_FIRST UINT32_C(0x80000000)

/* Request/reply's numbers for who asks and who answers. */
extern const char wpk_net_greeting_asks[WPK_NET_GREETING_SIZE];
extern const char wpk_net_greeting_answers[WPK_NET_GREETING_SIZE];

struct wpk_net_head {
    uint32_t number;
    size_t size; /* bytes of the message, without its number */
};

/* Bytes of a head. */
size_t wpk_net_head_size(bool is_local);
/* Write a head.   shape  at [WPK_NET_HEAD_MAX]
 * Returns the bytes that were written: the message follows them. */
size_t wpk_net_head_write(const struct wpk_net_head *head, bool is_local, char *at);
/* Read a head.   shape  at [wpk_net_head_size(is_local)]
 * False: it is none, or of a message of more than `size_max` bytes. A number without its first bit
 * came through a device; there is none. */
bool wpk_net_head_read(const char *at, bool is_local, size_t size_max, struct wpk_net_head *out);

#endif
