/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of one thread: what generated code allocates during a call.
 *
 *      first call: ─ overflow ─▶ malloc, and the need is recorded
 *      settle:     one block as large as the need, touched
 *      from then on: bump the top, drop it when the topmost is given back
 *
 * libc's allocator would trim and fault the same pages on every call: up to 1.9 times slower
 * (measured on a Winograd convolution).
 *
 * Invariants: top <= size; every allocation inside [0, top) has a header; what lies under a live
 * one is reused only after it. Not for two threads. `= {0}` is an empty scratch. */
#ifndef WPK_RUNTIME_SCRATCH_H
#define WPK_RUNTIME_SCRATCH_H

#include "common/err.h"

struct wpk_scratch_header;

struct wpk_scratch {
    char *block;          /* owned */
    size_t size;          /* bytes */
    size_t top;           /* bytes in use, holes included */
    size_t last;          /* offset of the topmost allocation's header; top == 0: none */
    size_t need;          /* bytes that one block would have needed at the worst moment */
    size_t overflow_size; /* bytes of the list */
    struct wpk_scratch_header *overflow; /* owned: what did not fit */
    size_t size_max; /* bytes in all; 0: unlimited. For tests and for hosts that bound memory */
};

void wpk_scratch_fini(struct wpk_scratch *scratch);

/* 64-byte aligned, a multiple of 64 bytes, not zeroed; NULL when out of memory. */
void *wpk_scratch_take(struct wpk_scratch *scratch, size_t size);
/* In any order; NULL is accepted. */
void wpk_scratch_give(struct wpk_scratch *scratch, void *memory);

/* Between calls: forget what a call that failed left behind, and make the block large enough for
 * another one like the last. Without memory for that, the next call overflows again. */
void wpk_scratch_settle(struct wpk_scratch *scratch);

#endif
