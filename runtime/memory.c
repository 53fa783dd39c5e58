/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/scratch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

size_t wpk_memory_round(size_t size)
{
    if (size > SIZE_MAX / 2) {
        return 0;
    }
    return (size + WPK_MEMORY_ALIGNMENT - 1) & ~(size_t)(WPK_MEMORY_ALIGNMENT - 1);
}

/* Stands before each block: a mapping, or for size 0 memory of the heap. */
struct header {
    void *start;
    size_t size;
};

/* Pages of a new mapping are zero. */
static char *take_pages(size_t size, struct header *header)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    header->size = size + WPK_MEMORY_HUGE + page;
    header->start =
        mmap(NULL, header->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (header->start == MAP_FAILED) {
        return NULL;
    }
    uintptr_t first = (uintptr_t)header->start + page;
    char *memory = (char *)((first + WPK_MEMORY_HUGE - 1) & ~(uintptr_t)(WPK_MEMORY_HUGE - 1));
    /* Asked before the first touch, which is what decides. A refusal costs speed only. */
    (void)madvise(memory, size, MADV_HUGEPAGE);
    for (size_t i = 0; i < size; i += page) {
        ((volatile char *)memory)[i] = 0;
    }
    return memory;
}

static char *take_heap(size_t size, struct header *header)
{
    size = wpk_memory_round(size) + WPK_MEMORY_ALIGNMENT;
    header->size = 0;
    header->start = aligned_alloc(WPK_MEMORY_ALIGNMENT, size);
    if (header->start == NULL) {
        return NULL;
    }
    memset(header->start, 0, size);
    return (char *)header->start + WPK_MEMORY_ALIGNMENT;
}

void *wpk_memory_take(size_t size)
{
    struct header header;

    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size += WPK_MEMORY_SLACK;
    char *memory = size >= WPK_MEMORY_HUGE ? take_pages(size, &header) : take_heap(size, &header);
    if (memory != NULL) {
        memcpy(memory - sizeof(header), &header, sizeof(header));
    }
    return memory;
}

void wpk_memory_give(void *memory)
{
    struct header header;

    if (memory == NULL) {
        return;
    }
    memcpy(&header, (char *)memory - sizeof(header), sizeof(header));
    if (header.size > 0) {
        (void)munmap(header.start, header.size);
    } else {
        free(header.start);
    }
}
