/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy's state as text, word after word: what the strategies' `save` and `load` are made of.
 *
 * The text is read back by the version that wrote it, on the space it was written for: both are
 * its first words. Candidates are therefore bare indices here, unlike everywhere else. */
#ifndef WPK_SEARCH_SNAPSHOT_H
#define WPK_SEARCH_SNAPSHOT_H

#include "search/space.h"

/* Reads words from left to right. The first failure sticks: what is read afterwards is zero. */
struct wpk_snapshot_reader {
    const char *at;
    const struct wpk_space *space;
    wpk_err err; /* WPK_EPARSE */
};

/* Start a text.   version: the strategy's, without a space */
void wpk_snapshot_begin(struct wpk_buf *out, const char *version, const struct wpk_space *space);
void wpk_snapshot_put_number(struct wpk_buf *out, uint64_t number);
void wpk_snapshot_put_real(struct wpk_buf *out, double real); /* bit for bit; finite */
void wpk_snapshot_put_rng(struct wpk_buf *out, const struct wpk_rng *rng);
void wpk_snapshot_put_candidate(struct wpk_buf *out, const struct wpk_candidate *candidate);

/* Start to read.
 *
 *   errors  WPK_EMISMATCH another version's text, or another space's */
WPK_MUST_CHECK wpk_err wpk_snapshot_open(struct wpk_snapshot_reader *reader, const char *text,
                                         const char *version, const struct wpk_space *space,
                                         struct wpk_diag *diag);
/* The next word, of *length bytes, not terminated; empty after a failure. */
const char *wpk_snapshot_word(struct wpk_snapshot_reader *reader, size_t *length);
/* At most `max`. */
uint64_t wpk_snapshot_number(struct wpk_snapshot_reader *reader, uint64_t max);
double wpk_snapshot_real(struct wpk_snapshot_reader *reader);
void wpk_snapshot_rng(struct wpk_snapshot_reader *reader, struct wpk_rng *rng);
/* One whose values the space has; whether it is legal there is not asked. */
void wpk_snapshot_candidate(struct wpk_snapshot_reader *reader, struct wpk_candidate *candidate);
/* What failed so far, or WPK_EPARSE when words are left over. */
WPK_MUST_CHECK wpk_err wpk_snapshot_close(struct wpk_snapshot_reader *reader,
                                          struct wpk_diag *diag);

#endif
