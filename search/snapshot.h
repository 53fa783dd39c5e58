/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy's state as words of text, for the slots `save` and `load` (strategy.h).
 *
 * The first words of the text are the strategy's version and the space's identity; only the same
 * version reads it, on the same space. Candidates are therefore written as bare indices. */
#ifndef WPK_SEARCH_SNAPSHOT_H
#define WPK_SEARCH_SNAPSHOT_H

#include "search/space.h"

/* Reads words from left to right. After the first failure every read returns zero. */
struct wpk_snapshot_reader {
    const char *at;
    const struct wpk_space *space;
    wpk_err err; /* WPK_EPARSE */
};

/* Write the first words of a text. `version` is the strategy's and contains no blank. */
void wpk_snapshot_begin(struct wpk_buf *out, const char *version, const struct wpk_space *space);
void wpk_snapshot_put_number(struct wpk_buf *out, uint64_t number);
void wpk_snapshot_put_real(struct wpk_buf *out, double real); /* bit for bit; finite */
void wpk_snapshot_put_rng(struct wpk_buf *out, const struct wpk_rng *rng);
void wpk_snapshot_put_candidate(struct wpk_buf *out, const struct wpk_candidate *candidate);

/* Start reading and check the first words.
 *
 *   owns    `text` and `space` are borrowed until wpk_snapshot_close
 *   errors  WPK_EMISMATCH a text of another version or another space */
wpk_err wpk_snapshot_open(struct wpk_snapshot_reader *reader, const char *text, const char *version,
                          const struct wpk_space *space, struct wpk_diag *diag);
/* The next word, *length bytes inside the text, without a NUL; empty after a failure. */
const char *wpk_snapshot_word(struct wpk_snapshot_reader *reader, size_t *length);
/* A number of at most `max`; a larger one is a failure. */
uint64_t wpk_snapshot_number(struct wpk_snapshot_reader *reader, uint64_t max);
double wpk_snapshot_real(struct wpk_snapshot_reader *reader);
void wpk_snapshot_rng(struct wpk_snapshot_reader *reader, struct wpk_rng *rng);
/* A candidate whose variant and choices exist in the space; it may be illegal there. */
void wpk_snapshot_candidate(struct wpk_snapshot_reader *reader, struct wpk_candidate *candidate);
/* The first failure; WPK_EPARSE when words are left over. */
wpk_err wpk_snapshot_close(struct wpk_snapshot_reader *reader, struct wpk_diag *diag);

#endif
