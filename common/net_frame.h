/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format between the two sides of common/net.h. Only the files of net.h include this.
 *
 * It is a subset of NNG's request/reply. Each side greets in eight bytes. A message is its size in
 * eight bytes (after a byte 1 over ipc), the request's number in four, and the data; the size
 * counts the number. The number's first bit is set, and the reply repeats the number. */
#ifndef WPK_COMMON_NET_FRAME_H
#define WPK_COMMON_NET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
