/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule's text as lines of words. `#` starts a comment; how far a line is indented and how
 * words are separated means nothing. */
#ifndef WPK_NEST_TEXT_READER_H
#define WPK_NEST_TEXT_READER_H

#include "common/err.h"

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

#endif
