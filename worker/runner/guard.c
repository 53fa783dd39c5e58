/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/subject.h"

#include "common/clock.h"
#include "worker/runner/run_batch.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define ALIGNMENT ((size_t)64)
#define ELEMENT_MAX ((size_t)8)
#define PATTERN 0xC7

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

/* Where in a body of whole pages a buffer begins. */
static size_t find_offset(enum wpk_guard_placement placement, size_t body, size_t size,
                          size_t element)
{
    switch (placement) {
    case WPK_GUARD_END:
        return body - size;
    case WPK_GUARD_START:
        return 0;
    case WPK_GUARD_SHIFTED:
        return element;
    case WPK_GUARD_ALIGNED:
        break;
    }
    return body - round_up(size, ALIGNMENT);
}

static void *take(void *user, size_t size, size_t element)
{
    struct wpk_guard *guard = user;
    struct wpk_guard_block *block = NULL;
    for (int i = 0; i < WPK_GUARD_BLOCKS_MAX && block == NULL; i++) {
        block = guard->blocks[i].map == NULL ? &guard->blocks[i] : NULL;
    }
    if (block == NULL || size > SIZE_MAX / 4) {
        return NULL;
    }
    WPK_ASSERT(element <= ELEMENT_MAX);
    size_t body = round_up(size + ELEMENT_MAX, PAGE);
    size_t map_size = body + 2 * PAGE;
    unsigned char *map = mmap(NULL, map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(map + PAGE, body, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, map_size);
        return NULL;
    }
    size_t slack = find_offset(guard->placement, body, size, element);
    *block = (struct wpk_guard_block){
        .map = map, .map_size = map_size, .data = map + PAGE + slack, .size = size};
    unsigned char *end = map + map_size - PAGE;
    memset(map + PAGE, PATTERN, slack);
    memset(block->data + size, PATTERN, (size_t)(end - block->data) - size);
    return block->data;
}

static void give(void *user, void *memory)
{
    struct wpk_guard *guard = user;
    for (int i = 0; i < WPK_GUARD_BLOCKS_MAX; i++) {
        struct wpk_guard_block *block = &guard->blocks[i];
        if (block->map != NULL && block->data == memory) {
            munmap(block->map, block->map_size);
            *block = (struct wpk_guard_block){0};
            return;
        }
    }
    WPK_ASSERT(memory == NULL);
}

void wpk_guard_init(struct wpk_guard *guard, enum wpk_guard_placement placement)
{
    *guard = (struct wpk_guard){.placement = placement};
    guard->memory = (struct wpk_provider_memory){.take = take, .give = give, .user = guard};
}

void wpk_guard_fini(struct wpk_guard *guard)
{
    for (int i = 0; i < WPK_GUARD_BLOCKS_MAX; i++) {
        if (guard->blocks[i].map != NULL) {
            munmap(guard->blocks[i].map, guard->blocks[i].map_size);
        }
    }
    *guard = (struct wpk_guard){0};
}

const char *wpk_guard_explain(const struct wpk_guard *guard, const void *address)
{
    const unsigned char *at = address;
    for (int i = 0; i < WPK_GUARD_BLOCKS_MAX; i++) {
        const struct wpk_guard_block *block = &guard->blocks[i];
        if (block->map == NULL || at < block->map || at >= block->map + block->map_size) {
            continue;
        }
        return at < block->data ? "just before a buffer" : "just past a buffer";
    }
    return "nowhere near a buffer";
}

static bool is_pattern(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++) {
        if (*from != PATTERN) {
            return false;
        }
    }
    return true;
}

wpk_err wpk_guard_check(const struct wpk_guard *guard, struct wpk_diag *diag)
{
    for (int i = 0; i < WPK_GUARD_BLOCKS_MAX; i++) {
        const struct wpk_guard_block *block = &guard->blocks[i];
        if (block->map == NULL) {
            continue;
        }
        const unsigned char *end = block->map + block->map_size - PAGE;
        if (!is_pattern(block->map + PAGE, block->data)) {
            return wpk_fail(diag, WPK_ECORRUPT, "the kernel wrote before a buffer of %zu bytes",
                            block->size);
        }
        if (!is_pattern(block->data + block->size, end)) {
            return wpk_fail(diag, WPK_ECORRUPT, "the kernel wrote past a buffer of %zu bytes",
                            block->size);
        }
    }
    return WPK_OK;
}

#define CHAIN_LENGTH 25000 /* 4 to 8 cycles each: 25 to 50 us at 4 GHz */
#define MEMORY_FLOATS (256 * 1024 / sizeof(float))
#define MEMORY_PASSES 8
#define RUN_COUNT 5

static float memory[MEMORY_FLOATS];

/* Kept from being folded away: the result leaves through a volatile. */
static volatile double sink;

static void run_once(void)
{
    double chain = 1.0;
    for (int i = 0; i < CHAIN_LENGTH; i++) {
        chain = chain * 0.999 + 0.001;
    }
    for (int pass = 0; pass < MEMORY_PASSES; pass++) {
        for (size_t i = 0; i < MEMORY_FLOATS; i++) {
            memory[i] += 1.0F;
        }
        /* Each pass is done: the compiler may not merge them. */
        __asm__ volatile("" : : "r"(memory) : "memory");
    }
    sink = chain;
}

uint64_t wpk_sentinel_run_ns(void)
{
    const struct wpk_clock *clock = wpk_clock_system();
    uint64_t best = UINT64_MAX;
    run_once(); /* the candidate has evicted the memory */
    for (int i = 0; i < RUN_COUNT; i++) {
        uint64_t start = wpk_clock_now_ns(clock);
        run_once();
        uint64_t ns = wpk_clock_now_ns(clock) - start;
        best = ns < best ? ns : best;
    }
    return best;
}
