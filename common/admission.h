/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections of a server stay, and for how long: limits in all and by address, and
 * deadlines, so that a client that opens many, or takes its time, keeps no other one out.
 *
 *      admit ──▶ READING ──▶ SERVING ──▶ SENDING ──▶ IDLE ──▶ READING ... ──▶ leave
 *                   └───────────┴── not ──┴───────────┴──▶ ENDING ──▶ leave
 *
 * A connection has a phase, and a deadline in each phase in which the client is waited for. Past
 * its deadline it is ended; so is the one whose turn it is when room is needed: unknown ones first,
 * then idle ones, the earliest deadline first. A connection that waits for the server is never
 * ended: neither one that is being served nor, for want of room, one that `is_spared`.
 *
 * A mark is one atomic exchange; everything else holds a lock for a moment. */
#ifndef WPK_COMMON_ADMISSION_H
#define WPK_COMMON_ADMISSION_H

#include "common/err.h"

#include <stdint.h>

#define WPK_ADMISSION_ENDING_MAX 256 /* connections that were ended and did not leave yet */
#define WPK_ADMISSION_NONE UINT32_MAX

enum wpk_phase {
    WPK_PHASE_READING, /* the first request is waited for, or one is coming */
    WPK_PHASE_SERVING, /* the server takes long */
    WPK_PHASE_SENDING, /* an answer leaves */
    WPK_PHASE_IDLE,    /* between two requests */
    WPK_PHASE_ENDING,
    WPK_PHASE_FREE,
};

enum wpk_verdict {
    WPK_ADMITTED,
    WPK_LATER,  /* some are ending, or are spared: in a moment there is room */
    WPK_REFUSED /* all others wait for the server, or stay */
};

/* Whose connections count together: an IPv6 network of 64 bits, an IPv4 address, a local user. */
struct wpk_source {
    uint8_t bytes[16];
};

/* Of an address in network order, of 4 or 16 bytes; an IPv4 address that IPv6 maps is that one. */
struct wpk_source wpk_source_of(const void *address, size_t size);

struct wpk_admission;

/* Limits count connections that were not ended; 0: none. The calls come with the lock held, for any
 * connection that is neither ending nor free. */
struct wpk_admission_options {
    uint32_t all_max;
    uint32_t of_source_max; /* at least unknown_of_source_max */
    uint32_t unknown_max;
    uint32_t unknown_of_source_max;
    bool known_stay; /* for want of room only unknown ones are ended */
    bool (*is_spared)(void *user, uint32_t connection); /* NULL: none */
    void (*end)(void *user, uint32_t connection, bool is_overdue);
    void *user;
};

/*   owns    caller frees
 *   errors  WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_admission_new(const struct wpk_admission_options *options,
                                         struct wpk_admission **out);
void wpk_admission_free(struct wpk_admission *admission);

/* A new connection: its number, below all_max + WPK_ADMISSION_ENDING_MAX, on WPK_ADMITTED. It is
 * READING. `source` NULL: no limit by source. */
enum wpk_verdict wpk_admission_admit(struct wpk_admission *admission,
                                     const struct wpk_source *source, uint64_t deadline_ns,
                                     uint32_t *connection);
void wpk_admission_leave(struct wpk_admission *admission, uint32_t connection);

/* The connection comes to a phase; false when it has been ended. `known`: it has shown who it is,
 * from now on. */
bool wpk_admission_mark(struct wpk_admission *admission, uint32_t connection, enum wpk_phase phase,
                        bool known, uint64_t deadline_ns);
/* The server has ended it itself. */
void wpk_admission_ended(struct wpk_admission *admission, uint32_t connection);
/* End those whose deadline has passed; how many. */
uint32_t wpk_admission_expire(struct wpk_admission *admission, uint64_t now_ns);
/* End one, to have its descriptor: WPK_ADMITTED; or else as above. */
enum wpk_verdict wpk_admission_yield(struct wpk_admission *admission);

/* It is to end with its next answer; and is that so? */
void wpk_admission_dismiss(struct wpk_admission *admission, uint32_t connection);
bool wpk_admission_is_last(struct wpk_admission *admission, uint32_t connection);
/* The same, and at once where no request is whole yet. */
void wpk_admission_expel(struct wpk_admission *admission, uint32_t connection);

/* Connections that are neither ending nor gone; and those that are in a phase. */
uint32_t wpk_admission_count(struct wpk_admission *admission);
uint32_t wpk_admission_count_in(struct wpk_admission *admission, enum wpk_phase phase);

#endif
