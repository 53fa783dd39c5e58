/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections of a server stay, and for how long: limits in all and by source, and deadlines,
 * so that a client with many or slow connections keeps no other client out.
 *
 *      admit ──▶ READING ──▶ SERVING ──▶ SENDING ──▶ IDLE ──▶ READING ... ──▶ leave
 *                   └───────────┴── not ──┴───────────┴──▶ ENDING ──▶ leave
 *
 * A connection has a phase. In every phase in which the server waits for the client it has a
 * deadline, and is ended past it. When room is needed, one connection is ended: unknown ones go
 * first, then idle ones, the earliest deadline first. A connection in SERVING is never ended; one
 * that `is_spared` is not ended to make room.
 *
 * wpk_admission_mark() exchanges one atomic word; other functions hold a lock for a moment. */
#ifndef WPK_COMMON_ADMISSION_H
#define WPK_COMMON_ADMISSION_H

#include "common/err.h"

#include <stdint.h>

#define WPK_ADMISSION_ENDING_MAX 256 /* connections that were ended and have not left yet */
#define WPK_ADMISSION_NONE UINT32_MAX

enum wpk_connection_phase {
    WPK_CONNECTION_READING, /* the server waits for the first request, or receives one */
    WPK_CONNECTION_SERVING, /* the client waits for the server */
    WPK_CONNECTION_SENDING, /* an answer is being sent */
    WPK_CONNECTION_IDLE,    /* between two requests */
    WPK_CONNECTION_ENDING,
    WPK_CONNECTION_FREE,
};

enum wpk_admission_verdict {
    WPK_ADMITTED,
    WPK_LATER,  /* others are ending or spared: there will be room soon */
    WPK_REFUSED /* no connection may be ended */
};

/* A source, whose connections count together: an IPv6 /64, an IPv4 address or a local user. */
struct wpk_source {
    uint8_t bytes[16];
};

/* Make a source of an address of 4 or 16 bytes in network order; an IPv4-mapped one is IPv4. */
struct wpk_source wpk_source_of(const void *address, size_t size);

struct wpk_admission;

/* Limits count connections that were not ended; 0: no limit. The callbacks are called with the lock
 * held, for connections that are neither ending nor free. */
struct wpk_admission_options {
    uint32_t all_max;
    uint32_t of_source_max;
    uint32_t unknown_max;
    uint32_t unknown_of_source_max;
    bool known_stay; /* only unknown connections are ended to make room */
    bool (*is_spared)(void *user, uint32_t connection); /* NULL: none */
    void (*end)(void *user, uint32_t connection, bool is_overdue);
    void *user;
};

/*   owns    caller frees
 *   errors  WPK_ENOMEM
 */
wpk_err wpk_admission_new(const struct wpk_admission_options *options, struct wpk_admission **out);
void wpk_admission_free(struct wpk_admission *admission);

/* Admit a connection, in READING. On WPK_ADMITTED *connection is its number, below all_max +
 * WPK_ADMISSION_ENDING_MAX. `source` NULL: no limit by source. */
enum wpk_admission_verdict wpk_admission_admit(struct wpk_admission *admission,
                                               const struct wpk_source *source,
                                               uint64_t deadline_ns, uint32_t *connection);
void wpk_admission_leave(struct wpk_admission *admission, uint32_t connection);

/* Set the connection's phase and deadline; false when it has been ended. `known`: the client is
 * authenticated from now on. */
bool wpk_admission_mark(struct wpk_admission *admission, uint32_t connection,
                        enum wpk_connection_phase phase, bool known, uint64_t deadline_ns);
/* Mark a connection that the server has ended itself. */
void wpk_admission_ended(struct wpk_admission *admission, uint32_t connection);
/* End the connections whose deadline has passed; returns their number. */
uint32_t wpk_admission_expire(struct wpk_admission *admission, uint64_t now_ns);
/* End one connection, so that its descriptor becomes free. WPK_ADMITTED: one was ended. */
enum wpk_admission_verdict wpk_admission_yield(struct wpk_admission *admission);

/* Let a connection end with its next answer; `is_last` is true after that. */
void wpk_admission_dismiss(struct wpk_admission *admission, uint32_t connection);
bool wpk_admission_is_last(struct wpk_admission *admission, uint32_t connection);
/* Let a connection end with its next answer, or at once in READING and IDLE. */
void wpk_admission_expel(struct wpk_admission *admission, uint32_t connection);

/* The number of connections that are neither ending nor free; and the number in one phase. */
uint32_t wpk_admission_count(struct wpk_admission *admission);
uint32_t wpk_admission_count_in(struct wpk_admission *admission, enum wpk_connection_phase phase);

#endif
