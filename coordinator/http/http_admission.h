/* SPDX-License-Identifier: Apache-2.0 */
/* Who may have a connection, and for how long: so that whoever takes many, or takes his time, keeps
 * nobody else out.
 *
 *      admit ──▶ READING ──▶ SERVING ──▶ SENDING ──▶ IDLE ──▶ READING ... ──▶ leave
 *                   └───────────┴── not ──┴───────────┴──▶ ENDING ──▶ leave
 *
 * Every connection has a phase, and a deadline in each phase in which it is the client that is
 * waited for. Past its deadline it is ended; so is one whose turn it is when room is needed: first
 * of those who have not shown who they are, then idle ones, the earliest deadline first. Ending is
 * shutdown(2): whoever reads from the socket notices and leaves. What waits for us is never ended:
 * neither what is being served, nor, for want of room, one whose bytes lie here unread. Else a
 * flood that is accepted faster than it is read would end those who came, and asked, in its midst.
 *
 * It also counts the memory that bodies take, of all connections together.
 *
 * A mark is one atomic exchange, and so is memory; everything else holds a lock for a moment. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_ADMISSION_H
#define WPK_COORDINATOR_HTTP_HTTP_ADMISSION_H

#include "common/err.h"

#include <stdint.h>

#define WPK_HTTP_DESCRIPTORS_MAX 65536 /* descriptors past it are not admitted */
#define WPK_HTTP_HELD_MAX ((size_t)128 << 20) /* bytes of large bodies on their way, in and out */
#define WPK_HTTP_SMALL_MAX 65536 /* bytes; smaller ones are not counted, so always served */
#define WPK_HTTP_ENDING_MAX 256        /* connections that were ended and did not leave yet */

enum wpk_http_phase {
    WPK_HTTP_READING, /* the first request is waited for, or one is coming */
    WPK_HTTP_SERVING, /* it is we who take long */
    WPK_HTTP_SENDING, /* an answer leaves */
    WPK_HTTP_IDLE,    /* between two requests */
    WPK_HTTP_ENDING,
};

enum wpk_http_verdict {
    WPK_HTTP_ADMITTED,
    WPK_HTTP_LATER,  /* some are ending, or are being read: in a moment there is room */
    WPK_HTTP_REFUSED /* everybody waits for us, or the descriptor is past the table */
};

/* Whose connections count together: an IPv6 network of 64 bits, an IPv4 address, a local user. */
struct wpk_http_address {
    uint8_t bytes[16];
};

struct wpk_http_admission;

/*   unit    of_one_max: connections of one address
 *   owns    caller frees
 *   errors  WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_http_admission_new(uint32_t connections_max, uint32_t of_one_max,
                                              struct wpk_http_admission **out);
void wpk_http_admission_free(struct wpk_http_admission *admission);

/* A new connection: its number, below connections_max + WPK_HTTP_ENDING_MAX, on WPK_HTTP_ADMITTED.
 * It is READING. The descriptor is still the caller's; it is open until the connection left. */
enum wpk_http_verdict wpk_http_admission_admit(struct wpk_http_admission *admission, int fd,
                                               const struct wpk_http_address *address,
                                               uint64_t deadline_ns, uint32_t *connection);
void wpk_http_admission_leave(struct wpk_http_admission *admission, uint32_t connection);
/* Which connection has this descriptor? WPK_HTTP_NOBODY: none. */
#define WPK_HTTP_NOBODY UINT32_MAX
uint32_t wpk_http_admission_find(struct wpk_http_admission *admission, int fd);

/* The connection comes to a phase; false when it has been ended. `known`: it has shown who it is,
 * from now on. */
bool wpk_http_admission_mark(struct wpk_http_admission *admission, uint32_t connection,
                             enum wpk_http_phase phase, bool known, uint64_t deadline_ns);

/* End those whose deadline has passed; how many. */
uint32_t wpk_http_admission_expire(struct wpk_http_admission *admission, uint64_t now_ns);
/* End one, to have its descriptor: WPK_HTTP_ADMITTED; or else as above. */
enum wpk_http_verdict wpk_http_admission_yield(struct wpk_http_admission *admission);
/* It is to end with its next answer; and is that so? */
void wpk_http_admission_dismiss(struct wpk_http_admission *admission, uint32_t connection);
bool wpk_http_admission_is_last(struct wpk_http_admission *admission, uint32_t connection);
/* The same, and at once where no request is whole yet. */
void wpk_http_admission_expel(struct wpk_http_admission *admission, uint32_t connection);

/* Count the bytes of a body; false, and nothing is counted, where it would be too many. A small
 * one counts as 0: connections are not so many that it matters. */
WPK_MUST_CHECK bool wpk_http_admission_hold(struct wpk_http_admission *admission, size_t *size);
void wpk_http_admission_release(struct wpk_http_admission *admission, size_t size);

/* Connections that are neither ending nor gone; and those that are in a phase. */
uint32_t wpk_http_admission_count(struct wpk_http_admission *admission);
uint32_t wpk_http_admission_count_in(struct wpk_http_admission *admission,
                                     enum wpk_http_phase phase);

#endif
