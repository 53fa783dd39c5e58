/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a text of PTX. */
#ifndef WPK_TESTS_GPU_PTX_TEXT_H
#define WPK_TESTS_GPU_PTX_TEXT_H

#include "tests/gpu/ptx.h"

/* A word is a name (with the dots, % and $ that belong to it), a number or one other character.
 * Comments and .loc, .file and .pragma lines are passed over. */
struct wpk_ptx_text {
    const char *at;
    int line;                    /* of the word, from 1 */
    char word[WPK_PTX_NAME_MAX]; /* "" at the end */
    uint32_t used_bytes; /* of the last .pragma "used_bytes_mask": of the load behind it; 0: all */
    struct wpk_diag *diag;
    wpk_err err; /* the first failure sticks; words are "" then */
};

void wpk_ptx_text_init(struct wpk_ptx_text *text, const char *from, struct wpk_diag *diag);

/* Go on to the next word. */
void wpk_ptx_text_next(struct wpk_ptx_text *text);

/* True if the word is `word`. */
bool wpk_ptx_text_is(const struct wpk_ptx_text *text, const char *word);

/* Go on if the word is `word`; else `take` fails, and `skip` returns false. */
void wpk_ptx_text_take(struct wpk_ptx_text *text, const char *word);
bool wpk_ptx_text_skip(struct wpk_ptx_text *text, const char *word);

/* Take a whole number. */
int64_t wpk_ptx_text_integer(struct wpk_ptx_text *text);

/* Note a failure at the word; the first one stays.
 *   errors  returns `err` or the one before */
wpk_err wpk_ptx_text_fail(struct wpk_ptx_text *text, wpk_err err, const char *format, ...)
    WPK_PRINTF(3, 4);

/* The bits of a number as PTX writes it: 12, -1, 0x1F, 0f3F800000, 0d…; `size` bytes are wanted:
 * of an f64 constant for an f32 none is made.
 *   errors  false: `word` is no number of that size */
bool wpk_ptx_text_bits(const char *word, int size, uint64_t *bits);

#endif
