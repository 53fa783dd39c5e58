/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of one thread: what generated code allocates during a call.
 *
 *      first call: ─ overflow ─▶ malloc, and the need is recorded
 *      settle:     one block as large as the need, touched
 *      later calls: raise the top, lower it when the topmost allocation is given back
 *
 * libc's allocator would trim and fault the same pages on every call, which was up to 1.9 times
 * slower (measured on a Winograd convolution).
 *
 * Invariants: top <= size. Every allocation inside [0, top) has a header. Memory below a live
 * allocation is reused only once that allocation is given back. A scratch serves one thread.
 * `= {0}` is an empty scratch. */
#ifndef WPK_RUNTIME_SCRATCH_H
#define WPK_RUNTIME_SCRATCH_H

#include "common/err.h"

#include <stddef.h>

struct wpk_scratch_header;

struct wpk_scratch {
    char *block;          /* owned */
    size_t size;          /* bytes */
    size_t top;           /* bytes in use, holes included */
    size_t last;          /* offset of the topmost allocation's header; top == 0: none */
    size_t need;          /* bytes that one block would have needed at the worst moment */
    size_t overflow_size; /* bytes in the list `overflow` */
    struct wpk_scratch_header *overflow; /* owned: allocations that did not fit into the block */
    size_t size_max; /* bytes in all; 0: unlimited. For tests and for hosts that bound memory */
};

void wpk_scratch_fini(struct wpk_scratch *scratch);

/* Allocate `size` bytes, rounded up to 64, aligned to 64, not zeroed; NULL when out of memory. */
void *wpk_scratch_take(struct wpk_scratch *scratch, size_t size);
/* Give an allocation back. Any order is accepted, and so is NULL. */
void wpk_scratch_give(struct wpk_scratch *scratch, void *memory);

/* Between calls: free what a failed call left allocated, and make the block as large as the largest
 * need so far. If there is no memory for that block, the next call overflows again. */
void wpk_scratch_settle(struct wpk_scratch *scratch);

/* Large blocks of memory that kernels use: prepared constants and scratch. */

/* Bytes past a tensor's end that may be read: generated code may load a whole vector where it needs
 * less. */
#define WPK_MEMORY_SLACK 128
#define WPK_MEMORY_ALIGNMENT 64
#define WPK_MEMORY_HUGE ((size_t)2 << 20)

/* A block, or a part of one. */
struct wpk_span {
    const void *data;
    size_t size; /* bytes */
};

/* Allocate zeroed memory of `size` bytes and WPK_MEMORY_SLACK more. A block of 2 MiB or more is
 * aligned to 2 MiB and asks for huge pages; a smaller one is aligned to 64 bytes. Every page has
 * been touched. NULL when out of memory.
 *   owns    caller calls wpk_memory_give */
void *wpk_memory_take(size_t size);
void wpk_memory_give(void *memory);

/* `size` rounded up to WPK_MEMORY_ALIGNMENT; 0 if the result might not fit. */
size_t wpk_memory_round(size_t size);

#endif
