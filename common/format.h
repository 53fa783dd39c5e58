/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers and tables for people. Only this file shows times in other units than ns. */
#ifndef WPK_COMMON_FORMAT_H
#define WPK_COMMON_FORMAT_H

#include "common/arena.h"
#include "common/buf.h"
#include "common/err.h"

#include <stdint.h>

#define WPK_HELP_WIDTH 80
#define WPK_FORMAT_SIZE 32 /* bytes of each text below, NUL included */
#define WPK_TEXT_TABLE_COLUMNS_MAX 14
#define WPK_TEXT_TABLE_ROWS_MAX 2048

/* Format with four significant digits: "590.1 µs", "1.750 ms"; "-" for 0, which means not timed. */
void wpk_format_ns(uint64_t ns, char out[WPK_FORMAT_SIZE]);
/* Format a time that a model predicts: "5.956 µs, not timed". */
void wpk_format_modelled(uint64_t ns, char out[WPK_FORMAT_SIZE]);
/* Format as "48 s", "3 min 05 s" or "2 h 10 min". */
void wpk_format_seconds(int64_t seconds, char out[WPK_FORMAT_SIZE]);
/* Format as "231.2 M", "1.500 k" or "12 "; a unit follows. */
void wpk_format_count(double value, char out[WPK_FORMAT_SIZE]);

/* A table of text; cells live in the arena. `= {0}` with an arena is an empty table. */
struct wpk_text_table {
    struct wpk_arena *arena;
    int column_count;
    int row_count; /* the heading included */
    const char
        *cells[WPK_TEXT_TABLE_ROWS_MAX][WPK_TEXT_TABLE_COLUMNS_MAX]; /* NULL: out of memory */
    bool right[WPK_TEXT_TABLE_COLUMNS_MAX];                          /* right-aligned: numbers */
    uint8_t rank[WPK_TEXT_TABLE_COLUMNS_MAX]; /* the highest is left out first; 0: never left out */
    bool prose[WPK_TEXT_TABLE_COLUMNS_MAX];   /* cut to 24 characters before a column is left out */
};

/* Add a row of column_count cells. Rows past WPK_TEXT_TABLE_ROWS_MAX are ignored. */
void wpk_text_table_add(struct wpk_text_table *table, const char *const *cells);
/* Append the table as lines of at most `width` characters (0: any). Columns are padded by
 * characters, not by bytes. Columns are left out by rank until the table fits; if those of rank 0
 * are too wide, the widest is cut, which "…" shows. */
void wpk_text_table_print(const struct wpk_text_table *table, int width, struct wpk_buf *out);
/* Append the whole table as comma-separated values. */
void wpk_text_table_print_csv(const struct wpk_text_table *table, struct wpk_buf *out);

/* Columns of the terminal that a text takes: characters, not bytes. */
int wpk_format_width(const char *text);
/* Append at most `width` characters of a text; "…" stands for what is cut off. */
void wpk_format_cut(const char *text, int width, struct wpk_buf *out);
/* Append a text as lines of at most `width` characters, and a newline. The first line begins at
 * column `indent`, where the caller stands; further lines are indented to it. */
void wpk_format_wrap(const char *text, int indent, int width, struct wpk_buf *out);

/* Append a word as a shell takes it: in quotes if it has other characters than those of names and
 * paths. */
void wpk_format_word(const char *word, struct wpk_buf *out);

/* Elementary functions of doubles made of additions, multiplications and divisions alone, whose
 * results are therefore the same on every machine, compiler and C library. Their error is below
 * 1e-15 of the result. */

/* e^x; 0 below -708, infinite above 709. */
double wpk_real_exp(double x);
/* The natural logarithm; -inf for 0, NaN below. */
double wpk_real_log(double x);
double wpk_real_tanh(double x);

/* Compare two doubles, or two uint64_t, in ascending order, for qsort: also structs, by their first
 * member. */
int wpk_real_compare(const void *a, const void *b);
int wpk_u64_compare(const void *a, const void *b);

/* UTF-8: checking and cutting text from outside. */

/* Bytes of the well-formed character at the start of `text`, 1 to 4; 0 if there is none. Overlong
 * forms, surrogates, code points past U+10FFFF and an empty text are not well formed. */
size_t wpk_utf8_length(const char *text, size_t size);

/* Offset of the first byte that is not well formed; `size` if all are. */
size_t wpk_utf8_check(const char *text, size_t size);

/* True if `text`, well formed or not, begins with a control character (C0, DEL, C1), which a
 * terminal obeys instead of showing it. */
bool wpk_utf8_is_control(const char *text);

/* Encode a code point (not a surrogate) and return its length. */
size_t wpk_utf8_encode(unsigned code, char out[4]);

#endif
