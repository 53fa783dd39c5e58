/* SPDX-License-Identifier: Apache-2.0 */
/* The last accesses of each word of shared memory, and the bytes that were written at all.
 *
 * Two accesses of one word, one of them a write, race if different threads make them and neither a
 * barrier of the block nor, within a warp, a synchronisation of its lanes lies between. There is
 * one record a word: of threads that access different bytes of it the last writer is known, and all
 * readers of some bytes count as readers of each of these. */
#ifndef WPK_TESTS_GPU_SHADOW_H
#define WPK_TESTS_GPU_SHADOW_H

#include "common/err.h"

#include <stdint.h>

/* An access: the barriers of the block before it, in all blocks so far, and the thread with the
 * number of synchronisations of its warp. Zero: none. */
struct wpk_shadow_access {
    uint32_t epoch; /* from 1 */
    uint16_t synced;
    uint16_t thread; /* or one of the following */
};

#define WPK_SHADOW_WARP 0x8000 /* several threads of the warp in the low bits */
#define WPK_SHADOW_MANY 0xffff /* threads of several warps */

struct wpk_shadow_word {
    struct wpk_shadow_access write, read;
    uint8_t write_bytes, read_bytes; /* of the last accesses, a bit each */
    uint8_t written, pending;        /* bytes that the block wrote, or that a copy will write */
    uint32_t block;                  /* of these two, from 1 */
};

struct wpk_shadow {
    struct wpk_shadow_word *word; /* owned; of four bytes each */
    size_t word_count;
    uint32_t epoch; /* grows with each barrier and each block */
    uint32_t block;
};

/*   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_shadow_init(struct wpk_shadow *shadow, size_t shared_size);
void wpk_shadow_fini(struct wpk_shadow *shadow);

/* A block starts: nothing is written. A barrier was passed by all. */
void wpk_shadow_begin(struct wpk_shadow *shadow);
void wpk_shadow_pass(struct wpk_shadow *shadow);

enum wpk_shadow_verdict {
    WPK_SHADOW_RIGHT,
    WPK_SHADOW_RACE,
    WPK_SHADOW_UNWRITTEN, /* bytes that the block did not write are read */
    WPK_SHADOW_PENDING,   /* an asynchronous copy to these bytes is under way */
};

/* Note the access of `bytes` (a bit each) of a word, and judge it. */
enum wpk_shadow_verdict wpk_shadow_read(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                        int thread, uint32_t synced);
enum wpk_shadow_verdict wpk_shadow_write(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                         int thread, uint32_t synced);

/* The same of an asynchronous copy, which writes at any time between its begin and its end. */
enum wpk_shadow_verdict wpk_shadow_begin_copy(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                              int thread, uint32_t synced);
enum wpk_shadow_verdict wpk_shadow_end_copy(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                            int thread, uint32_t synced);

#endif
