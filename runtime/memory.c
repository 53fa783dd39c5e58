/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

size_t wpk_memory_round(size_t size)
{
    if (size > SIZE_MAX / 2) {
        return 0;
    }
    return (size + WPK_MEMORY_ALIGNMENT - 1) & ~(size_t)(WPK_MEMORY_ALIGNMENT - 1);
}

void *wpk_memory_take(size_t size)
{
    size_t alignment = WPK_MEMORY_ALIGNMENT;

    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size += WPK_MEMORY_SLACK;
    if (size >= WPK_MEMORY_HUGE) {
        alignment = WPK_MEMORY_HUGE;
    }
    size = (size + alignment - 1) & ~(alignment - 1);
    void *memory = aligned_alloc(alignment, size);
    if (memory == NULL) {
        return NULL;
    }
    if (alignment == WPK_MEMORY_HUGE) {
        /* Asked before the first touch, which is what decides. A refusal costs speed only. */
        (void)madvise(memory, size, MADV_HUGEPAGE);
    }
    memset(memory, 0, size);
    return memory;
}

void wpk_memory_give(void *memory)
{
    free(memory);
}
