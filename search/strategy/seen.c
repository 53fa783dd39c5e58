/* SPDX-License-Identifier: Apache-2.0 */
#include "search/strategy/seen.h"
#include "common/format.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 1024
#define COUNT_MAX 100000000 /* as many as anybody will measure */
#define KEY_BITS 48
#define KEY_DIGITS 8 /* of 6 bits each */

static const char digits[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

void wpk_seen_fini(struct wpk_seen *seen)
{
    free(seen->slots);
    memset(seen, 0, sizeof *seen);
}

/* The upper bits of a product depend on all bits of the hash. */
static uint64_t key_of(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    uint64_t hash = wpk_space_key(space, candidate) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t key = hash >> (64 - KEY_BITS);
    return key == 0 ? 1 : key; /* 0 marks a free slot */
}

/* The slot that holds `key`, or the free one where it belongs. */
static size_t find(const uint64_t *slots, size_t capacity, uint64_t key)
{
    size_t at = (size_t)key & (capacity - 1);
    while (slots[at] != 0 && slots[at] != key) {
        at = (at + 1) & (capacity - 1);
    }
    return at;
}

bool wpk_seen_has(const struct wpk_seen *seen, const struct wpk_space *space,
                  const struct wpk_candidate *candidate)
{
    return seen->count > 0 &&
           seen->slots[find(seen->slots, seen->capacity, key_of(space, candidate))] != 0;
}

static wpk_err put_key(struct wpk_seen *seen, uint64_t key)
{
    if ((seen->count + 1) * 2 > seen->capacity) {
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
    }
    size_t at = find(seen->slots, seen->capacity, key);
    seen->count += seen->slots[at] == 0;
    seen->slots[at] = key;
    return WPK_OK;
}

wpk_err wpk_seen_put(struct wpk_seen *seen, const struct wpk_space *space,
                     const struct wpk_candidate *candidate)
{
    return put_key(seen, key_of(space, candidate));
}

/* Start the walk at the first point of a variant, or of the next one that can be derived.
 *   errors  WPK_EEXHAUSTED there is none; WPK_ENOMEM */
static wpk_err start_variant(const struct wpk_space *space, int variant,
                             struct wpk_candidate *cursor)
{
    while (variant < space->variant_count && wpk_space_variant(space, variant) == NULL) {
        if (wpk_space_variant_error(space, variant) == WPK_ENOMEM) {
            return WPK_ENOMEM;
        }
        variant++;
    }
    if (variant >= space->variant_count) {
        return WPK_EEXHAUSTED;
    }
    memset(cursor, 0, sizeof *cursor);
    cursor->variant = variant;
    cursor->gene_count = space->variants[variant].gene_count;
    return WPK_OK;
}

/* Step the walk: an odometer over the genes, then the next variant. */
static wpk_err step(const struct wpk_space *space, struct wpk_candidate *cursor)
{
    const struct wpk_variant *variant = &space->variants[cursor->variant];
    struct wpk_candidate next = *cursor;
    for (int g = 0; g < variant->gene_count; g++) {
        if (next.gene[g] + 1 < variant->genes[g].choice_count) {
            next.gene[g]++;
            *cursor = next;
            return WPK_OK;
        }
        next.gene[g] = 0;
    }
    return start_variant(space, cursor->variant + 1, cursor);
}

static wpk_err walk(struct wpk_seen *seen, const struct wpk_space *space, struct wpk_candidate *out)
{
    wpk_err err = seen->walked ? WPK_EEXHAUSTED : WPK_OK;
    if (!seen->walking) {
        err = start_variant(space, 0, &seen->cursor);
        seen->walking = err != WPK_ENOMEM;
    }
    for (int i = 0; i < WPK_SEEN_STEPS_MAX && err == WPK_OK; i++) {
        struct wpk_candidate here = seen->cursor;
        err = step(space, &seen->cursor);
        if (err != WPK_ENOMEM && wpk_space_is_legal(space, &here) &&
            !wpk_seen_has(seen, space, &here)) {
            seen->walked = err == WPK_EEXHAUSTED;
            *out = here;
            return WPK_OK;
        }
    }
    seen->walked = err == WPK_EEXHAUSTED;
    return err == WPK_ENOMEM ? err : WPK_EEXHAUSTED;
}

wpk_err wpk_seen_draw(struct wpk_seen *seen, const struct wpk_space *space, struct wpk_rng *rng,
                      struct wpk_candidate *out)
{
    for (int i = 0; i < WPK_SEEN_DRAWS_MAX && !seen->walking; i++) {
        struct wpk_candidate drawn;
        wpk_err err = wpk_space_draw(space, rng, &drawn);
        if (err == WPK_ENOMEM) {
            return err;
        }
        if (err == WPK_OK && !wpk_seen_has(seen, space, &drawn)) {
            *out = drawn;
            return WPK_OK;
        }
    }
    return walk(seen, space, out);
}

/* ---- snapshots: walking, walked, the cursor where there is one, count, all keys in one word */

wpk_err wpk_seen_save(const struct wpk_seen *seen, struct wpk_buf *out)
{
    wpk_snapshot_put_number(out, seen->walking);
    wpk_snapshot_put_number(out, seen->walked);
    if (seen->walking) {
        wpk_snapshot_put_candidate(out, &seen->cursor);
    }
    wpk_snapshot_put_number(out, seen->count);
    uint64_t *keys = malloc((seen->count + 1) * sizeof *keys);
    if (keys == NULL) {
        return WPK_ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < seen->capacity; i++) {
        if (seen->slots[i] != 0) {
            keys[count++] = seen->slots[i];
        }
    }
    WPK_ASSERT(count == seen->count);
    qsort(keys, count, sizeof *keys, wpk_u64_compare);
    wpk_buf_append_byte(out, ' ');
    for (size_t i = 0; i < count; i++) {
        for (int shift = KEY_BITS - 6; shift >= 0; shift -= 6) {
            wpk_buf_append_byte(out, digits[keys[i] >> shift & 63]);
        }
    }
    free(keys);
    return wpk_buf_status(out);
}

/* 0, which no key is, when one of the digits is none. */
static uint64_t read_key(const char *text)
{
    uint64_t key = 0;
    for (int i = 0; i < KEY_DIGITS; i++) {
        const char *at = strchr(digits, text[i]);
        if (text[i] == '\0' || at == NULL) {
            return 0;
        }
        key = key << 6 | (uint64_t)(at - digits);
    }
    return key;
}

wpk_err wpk_seen_load(struct wpk_seen *seen, struct wpk_snapshot_reader *reader)
{
    size_t length;
    seen->walking = wpk_snapshot_number(reader, 1) != 0;
    seen->walked = wpk_snapshot_number(reader, 1) != 0;
    if (seen->walking) {
        wpk_snapshot_candidate(reader, &seen->cursor);
    }
    size_t count = (size_t)wpk_snapshot_number(reader, COUNT_MAX);
    const char *keys = wpk_snapshot_word(reader, &length);
    if (length != count * KEY_DIGITS) {
        reader->err = WPK_EPARSE;
    }
    wpk_err err = WPK_OK;
    for (size_t i = 0; i < count && err == WPK_OK && reader->err == WPK_OK; i++) {
        uint64_t key = read_key(keys + i * KEY_DIGITS);
        if (key == 0) {
            reader->err = WPK_EPARSE;
        } else {
            err = put_key(seen, key);
        }
    }
    return err;
}
