/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/scratch.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* In front of each allocation. Inside the block a chain leads down through `below`. */
struct wpk_scratch_header {
    alignas(WPK_MEMORY_ALIGNMENT) size_t size; /* bytes with this header */
    size_t below;                              /* block: offset of the header below */
    bool in_block;
    bool free;                       /* block: given back, but something above is live */
    struct wpk_scratch_header *next; /* overflow: list */
};

_Static_assert(sizeof(struct wpk_scratch_header) == WPK_MEMORY_ALIGNMENT, "keeps alignment");

static void overflow_free(struct wpk_scratch *scratch)
{
    while (scratch->overflow != NULL) {
        struct wpk_scratch_header *next = scratch->overflow->next;
        free(scratch->overflow);
        scratch->overflow = next;
    }
    scratch->overflow_size = 0;
}

void wpk_scratch_fini(struct wpk_scratch *scratch)
{
    overflow_free(scratch);
    wpk_memory_give(scratch->block);
    memset(scratch, 0, sizeof(*scratch));
}

static struct wpk_scratch_header *header_at(const struct wpk_scratch *scratch, size_t offset)
{
    return (struct wpk_scratch_header *)(void *)(scratch->block + offset);
}

static void *overflow_take(struct wpk_scratch *scratch, size_t size)
{
    struct wpk_scratch_header *header = aligned_alloc(WPK_MEMORY_ALIGNMENT, size);

    if (header == NULL) {
        return NULL;
    }
    *header = (struct wpk_scratch_header){.size = size, .next = scratch->overflow};
    scratch->overflow = header;
    scratch->overflow_size += size;
    return header + 1;
}

static void *block_take(struct wpk_scratch *scratch, size_t size)
{
    struct wpk_scratch_header *header = header_at(scratch, scratch->top);

    *header = (struct wpk_scratch_header){.size = size, .below = scratch->last, .in_block = true};
    scratch->last = scratch->top;
    scratch->top += size;
    return header + 1;
}

void *wpk_scratch_take(struct wpk_scratch *scratch, size_t size)
{
    size_t whole = wpk_memory_round(size);
    size_t used = scratch->top + scratch->overflow_size;
    void *memory = NULL;

    if (whole < size) {
        return NULL;
    }
    whole += sizeof(struct wpk_scratch_header);
    if (scratch->size_max != 0 && whole > scratch->size_max - used) {
        return NULL;
    }
    memory = whole <= scratch->size - scratch->top ? block_take(scratch, whole)
                                                   : overflow_take(scratch, whole);
    if (memory != NULL && used + whole > scratch->need) {
        scratch->need = used + whole;
    }
    return memory;
}

void wpk_scratch_give(struct wpk_scratch *scratch, void *memory)
{
    struct wpk_scratch_header *header = memory;

    if (memory == NULL) {
        return;
    }
    header--;
    if (!header->in_block) {
        struct wpk_scratch_header **link = &scratch->overflow;
        while (*link != header) {
            WPK_ASSERT(*link != NULL);
            link = &(*link)->next;
        }
        *link = header->next;
        scratch->overflow_size -= header->size;
        free(header);
        return;
    }
    WPK_ASSERT(!header->free);
    header->free = true;
    while (scratch->top > 0 && header_at(scratch, scratch->last)->free) {
        scratch->top = scratch->last;
        scratch->last = header_at(scratch, scratch->top)->below;
    }
}

void wpk_scratch_settle(struct wpk_scratch *scratch)
{
    overflow_free(scratch);
    scratch->top = 0;
    scratch->last = 0;
    if (scratch->need <= scratch->size) {
        return;
    }
    wpk_memory_give(scratch->block);
    scratch->block = wpk_memory_take(scratch->need);
    scratch->size = scratch->block != NULL ? scratch->need : 0;
}
