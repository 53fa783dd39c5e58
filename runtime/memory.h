/* SPDX-License-Identifier: Apache-2.0 */
/* Large blocks that kernels work in: prepared constants and scratch. */
#ifndef WPK_RUNTIME_MEMORY_H
#define WPK_RUNTIME_MEMORY_H

#include <stddef.h>

/* Generated code may load a whole vector where it needs less: so much may be read past the end. */
#define WPK_MEMORY_SLACK 128
#define WPK_MEMORY_ALIGNMENT 64
#define WPK_MEMORY_HUGE ((size_t)2 << 20)

/* A block, or a part of one. */
struct wpk_span {
    const void *data;
    size_t size; /* bytes */
};

/* Zeroed memory, aligned to 64 bytes, or to 2 MiB and on huge pages if it is that large. All of
 * it has been touched.
 *   owns    caller calls wpk_memory_give; NULL is out of memory */
void *wpk_memory_take(size_t size);
void wpk_memory_give(void *memory);

/* `size` rounded up to the alignment; 0 when that does not fit. */
size_t wpk_memory_round(size_t size);

#endif
