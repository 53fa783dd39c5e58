/* SPDX-License-Identifier: Apache-2.0 */
/* Large blocks of memory that kernels use: prepared constants and scratch. */
#ifndef WPK_RUNTIME_MEMORY_H
#define WPK_RUNTIME_MEMORY_H

#include <stddef.h>

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
