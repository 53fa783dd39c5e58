/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and tables for people: the only place where times get other units than ns. */
#ifndef WPK_CLIENT_FORMAT_H
#define WPK_CLIENT_FORMAT_H

#include "common/arena.h"
#include "common/buf.h"

#include <stdint.h>

#define WPK_HELP_WIDTH 80
#define WPK_FORMAT_SIZE 32 /* of every text below, with its NUL */
#define WPK_TABLE_COLUMNS_MAX 14
#define WPK_TABLE_ROWS_MAX 2048

/* Four significant digits: "590.1 µs", "1.750 ms"; "-" for 0, which means not timed. */
void wpk_format_ns(uint64_t ns, char out[WPK_FORMAT_SIZE]);
/* "48 s", "3 min 05 s", "2 h 10 min" */
void wpk_format_seconds(int64_t seconds, char out[WPK_FORMAT_SIZE]);
/* "231.2 M", "1.500 k", "12 ": before a unit */
void wpk_format_count(double value, char out[WPK_FORMAT_SIZE]);

/* A table of text; cells live in the arena. `= {0}` and an arena is an empty one. */
struct wpk_table {
    struct wpk_arena *arena;
    int column_count;
    int row_count;                                                /* the heading included */
    const char *cells[WPK_TABLE_ROWS_MAX][WPK_TABLE_COLUMNS_MAX]; /* NULL: out of memory */
    bool right[WPK_TABLE_COLUMNS_MAX];                            /* aligned: numbers */
    uint8_t rank[WPK_TABLE_COLUMNS_MAX]; /* what gives way first has the highest; 0: never */
    bool prose[WPK_TABLE_COLUMNS_MAX];   /* is cut, to 24 characters, before a column gives way */
};

/* Add a row of column_count cells; rows past WPK_TABLE_ROWS_MAX are left out. */
void wpk_table_add(struct wpk_table *table, const char *const *cells);
/* Append it as lines of at most `width` characters (0: any), columns padded by what is shown, not
 * by bytes. Columns are left out by their rank until the rest fits; where those of rank 0 are too
 * wide together, the widest is cut, which "…" shows. */
void wpk_table_print(const struct wpk_table *table, int width, struct wpk_buf *out);
/* Append every column as comma-separated values. */
void wpk_table_print_csv(const struct wpk_table *table, struct wpk_buf *out);

/* Columns that a text takes on the terminal: characters, not bytes. */
int wpk_format_width(const char *text);
/* Append at most `width` characters of a text; "…" stands for what is cut off. */
void wpk_format_cut(const char *text, int width, struct wpk_buf *out);
/* Append a text as lines of at most `width` characters; it begins at column `indent`, as those
 * below do, which are indented. A newline ends it. */
void wpk_format_wrap(const char *text, int indent, int width, struct wpk_buf *out);

#endif
