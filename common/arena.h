/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator: many small objects with one lifetime, freed together.
 *
 * One arena serves one message, or one generation of a search. Objects inside are not freed singly,
 * and none outlives wpk_arena_reset(). Blocks are kept over a reset, so a steady state allocates
 * nothing. `= {0}` is an empty arena with the default limit. One thread uses an arena. */
#ifndef WPK_COMMON_ARENA_H
#define WPK_COMMON_ARENA_H

#include "common/err.h"

#define WPK_ARENA_SIZE_MAX_DEFAULT ((size_t)256 << 20)

struct wpk_arena_block;

struct wpk_arena {
    struct wpk_arena_block *first; /* owned chain; NULL while nothing was allocated */
    struct wpk_arena_block *current;
    size_t size_reserved; /* bytes in all blocks */
    size_t size_max;      /* bytes; 0: WPK_ARENA_SIZE_MAX_DEFAULT */
    bool is_full;         /* size_max was reached: memory did not run out */
};

void wpk_arena_init(struct wpk_arena *arena, size_t size_max);
void wpk_arena_fini(struct wpk_arena *arena);

/* Forget every allocation, keep the blocks. */
void wpk_arena_reset(struct wpk_arena *arena);

/* Return `count` zeroed objects of `size` bytes, aligned for any type; NULL without memory or at
 * the limit (the caller returns WPK_ENOMEM). A count or size of 0 gives a valid pointer. */
WPK_MUST_CHECK void *wpk_arena_alloc(struct wpk_arena *arena, size_t count, size_t size);

/* The same of small things, never NULL: without memory the program aborts, and past the limit only
 * `is_full` is set, which the owner checks where it grows. */
void *wpk_arena_demand(struct wpk_arena *arena, size_t count, size_t size);

/* Copy `text`, or `size` bytes of `data` with a NUL added; NULL where wpk_arena_alloc() fails. */
WPK_MUST_CHECK char *wpk_arena_copy_text(struct wpk_arena *arena, const char *text);
WPK_MUST_CHECK char *wpk_arena_copy_bytes(struct wpk_arena *arena, const char *data, size_t size);

/* Allocate typed objects: struct node *n = WPK_ARENA_NEW(arena, struct node, 1); */
#define WPK_ARENA_NEW(arena, type, count) ((type *)wpk_arena_alloc((arena), (count), sizeof(type)))
#define WPK_ARENA_DEMAND(arena, type, count)                                                       \
    ((type *)wpk_arena_demand((arena), (count), sizeof(type)))

#endif
