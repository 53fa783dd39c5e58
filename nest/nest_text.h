/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a schedule's nest: a block of lines for each stage of the main program, the last
 * stage first, so that a stage comes after all that read it.
 *
 *     stage Y root
 *       parallel n
 *       serial y step 2 exact
 *       serial x
 *       serial k step 8 exact
 *       unroll y.1
 *       lanes k.1
 *     stage T in Y k
 *       extent n 1 y 2 x 1 k 8
 *       init
 *         unroll y
 *         lanes k
 *       update
 *         serial c
 *         unroll y
 *         lanes k
 *
 * docs/schedule.md describes every word. */
#ifndef WPK_NEST_NEST_TEXT_H
#define WPK_NEST_NEST_TEXT_H

#include "common/buf.h"
#include "common/err.h"
#include "nest/nest.h"

#include <stdint.h>

#define WPK_TEXT_LINE_MAX 4096
#define WPK_TEXT_WORDS_MAX 48

/* Where a parser is: at one line, cut into words in place. = {.next = text} is the beginning. */
struct wpk_text_reader {
    const char *next;
    int line; /* from 1 */
    char text[WPK_TEXT_LINE_MAX];
    char *word[WPK_TEXT_WORDS_MAX];
    int word_count;
    struct wpk_diag *diag;
};

/* Go to the next line that has words; false at the end of the text, or after an error. */
bool wpk_text_next(struct wpk_text_reader *reader, wpk_err *err);
bool wpk_text_is(const struct wpk_text_reader *reader, int word, const char *text);
/* The word's column, from 1; after the last word that of the first. */
int wpk_text_column(const struct wpk_text_reader *reader, int word);
/* Fill the diag with the word's position and a text, and return WPK_EPARSE. */
wpk_err wpk_text_fail(struct wpk_text_reader *reader, int word, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Read a whole number.   errors  WPK_EPARSE, WPK_ERANGE */
wpk_err wpk_text_int(struct wpk_text_reader *reader, int word, int64_t low, int64_t high,
                     int64_t *out);

/* Write the nest, whose entries are all stages of its program, the last stage first. */
void wpk_nest_print(const struct wpk_nest *nest, struct wpk_buf *out);
/* Read the rest of the text into an empty nest that has a program, and find the regions of entries
 * that are not bounded. The parser checks the form only; call wpk_nest_check() to learn whether the
 * nest is valid.
 *   errors  WPK_EPARSE, WPK_ERANGE with line and column; WPK_ENOSPC */
wpk_err wpk_nest_parse(struct wpk_text_reader *reader, struct wpk_nest *nest);

/* A schedule's text as lines of words. `#` starts a comment; how far a line is indented and how
 * words are separated means nothing. */

#endif
