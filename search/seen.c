/* SPDX-License-Identifier: Apache-2.0 */
#include "search/seen.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 1024

void wpk_seen_fini(struct wpk_seen *seen)
{
    free(seen->slots);
    memset(seen, 0, sizeof *seen);
}

static uint64_t key_of(const struct wpk_candidate *candidate)
{
    uint64_t key = wpk_candidate_hash(candidate);
    return key == 0 ? 1 : key; /* 0 marks a free slot */
}

/* The slot that holds `key`, or the free one where it belongs. */
static size_t find(const uint64_t *slots, size_t capacity, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (capacity - 1);
    while (slots[at] != 0 && slots[at] != key) {
        at = (at + 1) & (capacity - 1);
    }
    return at;
}

static wpk_err grow(struct wpk_seen *seen)
{
    size_t capacity = seen->capacity == 0 ? CAPACITY_FIRST : seen->capacity * 2;
    uint64_t *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) {
        return WPK_ENOMEM;
    }
    for (size_t i = 0; i < seen->capacity; i++) {
        if (seen->slots[i] != 0) {
            slots[find(slots, capacity, seen->slots[i])] = seen->slots[i];
        }
    }
    free(seen->slots);
    seen->slots = slots;
    seen->capacity = capacity;
    return WPK_OK;
}

bool wpk_seen_has(const struct wpk_seen *seen, const struct wpk_candidate *candidate)
{
    return seen->count > 0 &&
           seen->slots[find(seen->slots, seen->capacity, key_of(candidate))] != 0;
}

wpk_err wpk_seen_put(struct wpk_seen *seen, const struct wpk_candidate *candidate)
{
    if ((seen->count + 1) * 2 > seen->capacity) {
        wpk_err err = grow(seen);
        if (err != WPK_OK) {
            return err;
        }
    }
    uint64_t key = key_of(candidate);
    size_t at = find(seen->slots, seen->capacity, key);
    seen->count += seen->slots[at] == 0;
    seen->slots[at] = key;
    return WPK_OK;
}

/* Start the walk at the first point of a variant; false when there is no such variant. */
static bool start_variant(const struct wpk_space *space, int variant, struct wpk_candidate *cursor)
{
    if (variant >= space->variant_count) {
        return false;
    }
    memset(cursor, 0, sizeof *cursor);
    cursor->variant = variant;
    cursor->gene_count = space->variants[variant].gene_count;
    return true;
}

/* Step the walk: an odometer over the genes, then the next variant. */
static bool step(const struct wpk_space *space, struct wpk_candidate *cursor)
{
    const struct wpk_variant *variant = &space->variants[cursor->variant];
    for (int g = 0; g < variant->gene_count; g++) {
        if (cursor->gene[g] + 1 < variant->genes[g].choice_count) {
            cursor->gene[g]++;
            return true;
        }
        cursor->gene[g] = 0;
    }
    return start_variant(space, cursor->variant + 1, cursor);
}

static wpk_err walk(struct wpk_seen *seen, const struct wpk_space *space, struct wpk_candidate *out)
{
    if (!seen->walking) {
        seen->walking = true;
        seen->walked = !start_variant(space, 0, &seen->cursor);
    }
    for (int i = 0; i < WPK_SEEN_STEPS_MAX && !seen->walked; i++) {
        struct wpk_candidate here = seen->cursor;
        seen->walked = !step(space, &seen->cursor);
        if (!wpk_seen_has(seen, &here) && wpk_space_is_legal(space, &here)) {
            *out = here;
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}

wpk_err wpk_seen_draw(struct wpk_seen *seen, const struct wpk_space *space, struct wpk_rng *rng,
                      struct wpk_candidate *out)
{
    for (int i = 0; i < WPK_SEEN_DRAWS_MAX && !seen->walking; i++) {
        struct wpk_candidate drawn;
        if (wpk_space_draw(space, rng, &drawn) == WPK_OK && !wpk_seen_has(seen, &drawn)) {
            *out = drawn;
            return WPK_OK;
        }
    }
    return walk(seen, space, out);
}
