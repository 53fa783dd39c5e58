/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/shadow.h"

#include <stdlib.h>
#include <string.h>

#define WARP_OF(thread) ((thread) / 32)

wpk_err wpk_shadow_init(struct wpk_shadow *shadow, size_t shared_size)
{
    size_t words = (shared_size + 3) / 4;
    *shadow =
        (struct wpk_shadow){.word = calloc(words + 1, sizeof(*shadow->word)), .word_count = words};
    return shadow->word == NULL ? WPK_ENOMEM : WPK_OK;
}

void wpk_shadow_fini(struct wpk_shadow *shadow)
{
    free(shadow->word);
    *shadow = (struct wpk_shadow){0};
}

/* After four thousand million barriers the marks of the first would be met again. */
static void advance(struct wpk_shadow *shadow)
{
    if (shadow->epoch >= UINT32_MAX - 1 || shadow->block >= UINT32_MAX - 1) {
        memset(shadow->word, 0, shadow->word_count * sizeof(*shadow->word));
        shadow->epoch = shadow->block = 0;
    }
    shadow->epoch++;
}

void wpk_shadow_begin(struct wpk_shadow *shadow)
{
    advance(shadow);
    shadow->block++;
}

void wpk_shadow_pass(struct wpk_shadow *shadow)
{
    advance(shadow);
}

/* True if nothing orders the access before one of `thread` now. */
static bool is_unordered(const struct wpk_shadow *shadow, const struct wpk_shadow_access *before,
                         int thread, uint32_t synced)
{
    if (before->epoch != shadow->epoch || before->thread == thread) {
        return false;
    }
    int warp = before->thread >= WPK_SHADOW_WARP ? before->thread - WPK_SHADOW_WARP
                                                 : WARP_OF(before->thread);
    return before->thread == WPK_SHADOW_MANY || warp != WARP_OF(thread) ||
           before->synced == (uint16_t)synced;
}

/* The word as this block knows it. */
static struct wpk_shadow_word *word_of(struct wpk_shadow *shadow, size_t word)
{
    struct wpk_shadow_word *w = &shadow->word[word];
    if (w->block != shadow->block) {
        w->written = w->pending = 0;
        w->block = shadow->block;
    }
    return w;
}

enum wpk_shadow_verdict wpk_shadow_read(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                        int thread, uint32_t synced)
{
    struct wpk_shadow_word *w = word_of(shadow, word);
    struct wpk_shadow_access *read = &w->read;
    if ((w->pending & bytes) != 0) {
        return WPK_SHADOW_PENDING;
    }
    if ((w->written & bytes) != bytes) {
        return WPK_SHADOW_UNWRITTEN;
    }
    if ((w->write_bytes & bytes) != 0 && is_unordered(shadow, &w->write, thread, synced)) {
        return WPK_SHADOW_RACE;
    }
    bool now = read->epoch == shadow->epoch;
    bool warp = now && read->thread != WPK_SHADOW_MANY &&
                (read->thread >= WPK_SHADOW_WARP ? read->thread - WPK_SHADOW_WARP
                                                 : WARP_OF(read->thread)) == WARP_OF(thread);
    now = now && !(warp && read->synced != (uint16_t)synced); /* else this one takes its place */
    bool other = now && read->thread != thread;
    w->read_bytes = (uint8_t)(now ? w->read_bytes | bytes : bytes);
    read->epoch = shadow->epoch;
    read->synced = (uint16_t)synced;
    read->thread = (uint16_t)(!other ? thread
                              : warp ? WPK_SHADOW_WARP + WARP_OF(thread)
                                     : WPK_SHADOW_MANY);
    return WPK_SHADOW_RIGHT;
}

static enum wpk_shadow_verdict note_write(const struct wpk_shadow *shadow,
                                          struct wpk_shadow_word *w, uint8_t bytes, int thread,
                                          uint32_t synced)
{
    if ((w->pending & bytes) != 0) {
        return WPK_SHADOW_PENDING;
    }
    if (((w->write_bytes & bytes) != 0 && is_unordered(shadow, &w->write, thread, synced)) ||
        ((w->read_bytes & bytes) != 0 && is_unordered(shadow, &w->read, thread, synced))) {
        return WPK_SHADOW_RACE;
    }
    bool same = w->write.epoch == shadow->epoch && w->write.thread == thread;
    w->write_bytes = (uint8_t)(same ? w->write_bytes | bytes : bytes);
    w->write = (struct wpk_shadow_access){shadow->epoch, (uint16_t)synced, (uint16_t)thread};
    return WPK_SHADOW_RIGHT;
}

enum wpk_shadow_verdict wpk_shadow_write(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                         int thread, uint32_t synced)
{
    struct wpk_shadow_word *w = word_of(shadow, word);
    w->written |= bytes;
    return note_write(shadow, w, bytes, thread, synced);
}

enum wpk_shadow_verdict wpk_shadow_begin_copy(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                              int thread, uint32_t synced)
{
    struct wpk_shadow_word *w = word_of(shadow, word);
    enum wpk_shadow_verdict verdict = note_write(shadow, w, bytes, thread, synced);
    w->pending |= bytes;
    return verdict;
}

enum wpk_shadow_verdict wpk_shadow_end_copy(struct wpk_shadow *shadow, size_t word, uint8_t bytes,
                                            int thread, uint32_t synced)
{
    word_of(shadow, word)->pending &= (uint8_t)~bytes;
    return wpk_shadow_write(shadow, word, bytes, thread, synced);
}
