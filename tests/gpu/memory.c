/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SPACE_SIZE ((uint64_t)1 << 42)
#define GUARD_SIZE ((uint64_t)1 << 20) /* between allocations */
#define PAGE_SIZE ((uint64_t)4096)
#define WORD_SIZE 4
#define WORD_BYTES 15 /* a bit each */

wpk_err wpk_device_memory_init(struct wpk_device_memory *memory, uint64_t size_max)
{
    void *at =
        mmap(NULL, SPACE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return WPK_ESYSTEM;
    }
    *memory = (struct wpk_device_memory){
        .reserved = at, .next = (uint64_t)(uintptr_t)at + GUARD_SIZE, .size_max = size_max};
    return WPK_OK;
}

void wpk_device_memory_fini(struct wpk_device_memory *memory)
{
    if (memory->reserved != NULL) {
        munmap(memory->reserved, SPACE_SIZE);
    }
    for (size_t i = 0; i < memory->range_count; i++) {
        free(memory->range[i].word);
    }
    free(memory->range);
    *memory = (struct wpk_device_memory){0};
}

static bool reserve_range(struct wpk_device_memory *memory)
{
    if (memory->range_count == memory->range_capacity) {
        size_t capacity = memory->range_capacity == 0 ? 64 : 2 * memory->range_capacity;
        struct wpk_device_range *grown = realloc(memory->range, capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        memory->range = grown;
        memory->range_capacity = capacity;
    }
    return true;
}

wpk_err wpk_device_memory_new(struct wpk_device_memory *memory, uint64_t size, uint64_t *address)
{
    uint64_t pages = (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    uint64_t end = (uint64_t)(uintptr_t)memory->reserved + SPACE_SIZE;
    if (size == 0) {
        return WPK_EINVAL;
    }
    if (size > memory->size_max - memory->used || pages + GUARD_SIZE > end - memory->next ||
        !reserve_range(memory)) {
        return WPK_ENOMEM;
    }
    struct wpk_device_word *word = calloc((size_t)(size / WORD_SIZE + 1), sizeof(*word));
    if (word == NULL ||
        mprotect((void *)(uintptr_t)memory->next, pages, PROT_READ | PROT_WRITE) != 0) {
        free(word);
        return WPK_ENOMEM;
    }
    *address = memory->next;
    memory->range[memory->range_count++] =
        (struct wpk_device_range){.from = memory->next, .to = memory->next + size, .word = word};
    memory->next += pages + GUARD_SIZE;
    memory->used += size;
    return WPK_OK;
}

static struct wpk_device_range *find(const struct wpk_device_memory *memory, uint64_t address)
{
    size_t low = 0, high = memory->range_count; /* the last range that begins at or before it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->range[middle].from <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct wpk_device_range *range = low == 0 ? NULL : &memory->range[low - 1];
    return range != NULL && address < range->to && !range->freed ? range : NULL;
}

struct wpk_device_range *wpk_device_memory_find(const struct wpk_device_memory *memory,
                                                uint64_t address)
{
    return find(memory, address);
}

wpk_err wpk_device_memory_free(struct wpk_device_memory *memory, uint64_t address)
{
    struct wpk_device_range *range = find(memory, address);
    if (range == NULL || range->from != address) {
        return WPK_EINVAL;
    }
    uint64_t pages = (range->to - range->from + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    memory->used -= range->to - range->from;
    range->freed = true;
    free(range->word);
    range->word = NULL;
    (void)madvise((void *)(uintptr_t)address, pages, MADV_DONTNEED);
    (void)mprotect((void *)(uintptr_t)address, pages, PROT_NONE);
    return WPK_OK;
}

/* ---- accesses */

/* Bytes of a word, from `from` to before `to`, which count from the range's beginning. */
static uint8_t bytes_of(uint64_t from, uint64_t to, uint64_t word)
{
    uint64_t first = from > word * WORD_SIZE ? from - word * WORD_SIZE : 0;
    uint64_t end = to - word * WORD_SIZE < WORD_SIZE ? to - word * WORD_SIZE : WORD_SIZE;
    return (uint8_t)(WORD_BYTES >> (WORD_SIZE - (end - first)) << first);
}

void wpk_device_memory_store(struct wpk_device_memory *memory, uint64_t address, uint64_t size)
{
    struct wpk_device_range *range = find(memory, address);
    WPK_ASSERT(range != NULL && size <= range->to - address);
    uint64_t from = address - range->from, to = from + size;
    range->whole = range->whole || size == range->to - range->from;
    for (uint64_t w = from / WORD_SIZE; w * WORD_SIZE < to; w++) {
        range->word[w].written |= bytes_of(from, to, w);
        range->word[w].writer = 0;
    }
}

enum wpk_device_verdict wpk_device_memory_read(const struct wpk_device_range *range,
                                               uint64_t address, uint32_t size,
                                               const struct wpk_device_visitor *visitor)
{
    uint64_t from = address - range->from, to = from + size;
    if (range->whole && !range->stored) {
        return WPK_DEVICE_RIGHT;
    }
    for (uint64_t w = from / WORD_SIZE; w * WORD_SIZE < to; w++) {
        struct wpk_device_word *word = &range->word[w];
        uint8_t bytes = bytes_of(from, to, w);
        if ((bytes & ~word->written) != 0) {
            return WPK_DEVICE_UNWRITTEN;
        }
        if (word->writer >= visitor->first && word->writer != visitor->block && !visitor->told &&
            (word->write_bytes & bytes) != 0) {
            return WPK_DEVICE_RACE;
        }
        if (word->reader < visitor->first) {
            word->reader = visitor->block;
            word->read_bytes = 0;
        }
        word->read_bytes |= word->reader == visitor->block ? bytes : 0;
    }
    return WPK_DEVICE_RIGHT;
}

enum wpk_device_verdict wpk_device_memory_write(struct wpk_device_range *range, uint64_t address,
                                                uint32_t size,
                                                const struct wpk_device_visitor *visitor)
{
    uint64_t from = address - range->from, to = from + size;
    bool again = false;
    range->stored = true;
    for (uint64_t w = from / WORD_SIZE; w * WORD_SIZE < to; w++) {
        struct wpk_device_word *word = &range->word[w];
        uint8_t bytes = bytes_of(from, to, w);
        bool written = word->writer >= visitor->first && word->writer != visitor->block &&
                       (word->write_bytes & bytes) != 0;
        bool read = word->reader >= visitor->first && word->reader != visitor->block &&
                    (word->read_bytes & bytes) != 0;
        if (read && !visitor->told) {
            return WPK_DEVICE_RACE;
        }
        again = again || (written && !visitor->told);
        word->write_bytes =
            (uint8_t)(word->writer == visitor->block ? word->write_bytes | bytes : bytes);
        word->writer = visitor->block;
        word->written |= bytes;
    }
    return again ? WPK_DEVICE_AGAIN : WPK_DEVICE_RIGHT;
}
