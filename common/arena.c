/* SPDX-License-Identifier: Apache-2.0 */
#include "common/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Under ASan only live objects may be touched; a poisoned byte at least follows each. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define GAP_MIN 1
#else
#define GAP_MIN 0
#define ASAN_POISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#endif

/* Large enough that a message or a chromosome needs one block; blocks double up to the cap. */
#define BLOCK_SIZE_MIN ((size_t)16 << 10)
#define BLOCK_SIZE_DOUBLING_MAX ((size_t)4 << 20)

struct wpk_arena_block {
    struct wpk_arena_block *next;
    size_t capacity;
    size_t used;
    alignas(max_align_t) char data[];
};

void wpk_arena_init(struct wpk_arena *arena, size_t size_max)
{
    *arena = (struct wpk_arena){.size_max = size_max};
}

void wpk_arena_fini(struct wpk_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    for (struct wpk_arena_block *block = arena->first; block != NULL;) {
        struct wpk_arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = (struct wpk_arena){0};
}

void wpk_arena_reset(struct wpk_arena *arena)
{
    for (struct wpk_arena_block *block = arena->first; block != NULL; block = block->next) {
        ASAN_POISON_MEMORY_REGION(block->data, block->used);
        block->used = 0;
    }
    arena->current = arena->first;
    arena->is_full = false;
}

/* Put a new block with room for `size` behind the current one. */
static bool add_block(struct wpk_arena *arena, size_t size)
{
    size_t limit = arena->size_max != 0 ? arena->size_max : WPK_ARENA_SIZE_MAX_DEFAULT;
    size_t room = limit - (arena->size_reserved < limit ? arena->size_reserved : limit);
    size_t capacity = arena->current != NULL ? arena->current->capacity : BLOCK_SIZE_MIN / 2;

    if (size > room) {
        arena->is_full = true;
        return false;
    }
    capacity = capacity < BLOCK_SIZE_DOUBLING_MAX ? capacity * 2 : BLOCK_SIZE_DOUBLING_MAX;
    capacity = capacity < size ? size : capacity;
    capacity = capacity > room ? room : capacity;

    struct wpk_arena_block *block = malloc(sizeof(*block) + capacity);
    if (block == NULL) {
        return false;
    }
    *block = (struct wpk_arena_block){.capacity = capacity};
    ASAN_POISON_MEMORY_REGION(block->data, capacity);
    if (arena->current == NULL) {
        arena->first = block;
    } else {
        block->next = arena->current->next;
        arena->current->next = block;
    }
    arena->current = block;
    arena->size_reserved += capacity;
    return true;
}

void *wpk_arena_alloc(struct wpk_arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);
    size_t wanted;

    if (__builtin_mul_overflow(count, size, &wanted) || wanted > SIZE_MAX - align - GAP_MIN) {
        return NULL;
    }
    /* At least one unit, so that every pointer is distinct. */
    size_t bytes = wanted == 0 ? align : (wanted + GAP_MIN + align - 1) / align * align;

    struct wpk_arena_block *block = arena->current;
    while (block != NULL && block->capacity - block->used < bytes && block->next != NULL) {
        /* After a reset the chain behind the current block is empty and waits to be used. */
        block = block->next;
        arena->current = block;
    }
    if (block == NULL || block->capacity - block->used < bytes) {
        if (!add_block(arena, bytes)) {
            return NULL;
        }
        block = arena->current;
    }
    void *result = block->data + block->used;
    block->used += bytes;
    ASAN_UNPOISON_MEMORY_REGION(result, wanted);
    return memset(result, 0, wanted);
}

void *wpk_arena_demand(struct wpk_arena *arena, size_t count, size_t size)
{
    void *result = wpk_arena_alloc(arena, count, size);
    if (result == NULL) {
        size_t limit = arena->size_max;
        arena->size_max = SIZE_MAX;
        result = WPK_DEMAND(wpk_arena_alloc(arena, count, size));
        arena->size_max = limit;
    }
    return result;
}

char *wpk_arena_copy_bytes(struct wpk_arena *arena, const char *data, size_t size)
{
    WPK_ASSERT(data != NULL || size == 0);
    if (size == SIZE_MAX) {
        return NULL;
    }
    char *copy = wpk_arena_alloc(arena, 1, size + 1);
    if (copy != NULL && size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

char *wpk_arena_copy_text(struct wpk_arena *arena, const char *text)
{
    return wpk_arena_copy_bytes(arena, text, strlen(text));
}
