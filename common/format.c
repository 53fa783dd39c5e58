/* SPDX-License-Identifier: Apache-2.0 */
#include "common/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Four significant digits of a value that is at least 1, or "0.123" below. */
static void format_scaled(double value, const char *unit, char out[WPK_FORMAT_SIZE])
{
    int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;

    snprintf(out, WPK_FORMAT_SIZE, "%.*f%s%s", decimals, value, unit[0] != '\0' ? " " : "", unit);
}

void wpk_format_ns(uint64_t ns, char out[WPK_FORMAT_SIZE])
{
    double value = (double)ns;

    if (ns == 0) {
        snprintf(out, WPK_FORMAT_SIZE, "-");
    } else if (ns < 1000) {
        snprintf(out, WPK_FORMAT_SIZE, "%" PRIu64 " ns", ns);
    } else if (value < 999.95e3) {
        format_scaled(value / 1e3, "µs", out);
    } else if (value < 999.95e6) {
        format_scaled(value / 1e6, "ms", out);
    } else {
        format_scaled(value / 1e9, "s", out);
    }
}

void wpk_format_modelled(uint64_t ns, char out[WPK_FORMAT_SIZE])
{
    char time[WPK_FORMAT_SIZE];

    wpk_format_ns(ns, time);
    snprintf(out, WPK_FORMAT_SIZE, "%.18s, not timed", time);
}

void wpk_format_seconds(int64_t seconds, char out[WPK_FORMAT_SIZE])
{
    seconds = seconds < 0 ? 0 : seconds;
    if (seconds < 60) {
        snprintf(out, WPK_FORMAT_SIZE, "%" PRId64 " s", seconds);
    } else if (seconds < 3600) {
        snprintf(out, WPK_FORMAT_SIZE, "%" PRId64 " min %02" PRId64 " s", seconds / 60,
                 seconds % 60);
    } else {
        snprintf(out, WPK_FORMAT_SIZE, "%" PRId64 " h %02" PRId64 " min", seconds / 3600,
                 seconds / 60 % 60);
    }
}

void wpk_format_count(double value, char out[WPK_FORMAT_SIZE])
{
    static const struct {
        double size;
        const char *unit;
    } scales[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};

    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        if (value >= 0.99995 * scales[i].size) {
            format_scaled(value / scales[i].size, scales[i].unit, out);
            return;
        }
    }
    if (value == floor(value)) {
        snprintf(out, WPK_FORMAT_SIZE, "%.0f ", value);
    } else {
        format_scaled(value, "", out);
    }
}

int wpk_format_width(const char *text)
{
    int width = 0;

    /* µ and ± are two bytes and one column. */
    for (const char *p = text; *p != '\0'; p++) {
        width += ((unsigned char)*p & 0xc0) != 0x80;
    }
    return width;
}

void wpk_format_cut(const char *text, int width, struct wpk_buf *out)
{
    const char *p = text;

    if (wpk_format_width(text) <= width) {
        wpk_buf_append_text(out, text);
        return;
    }
    for (int shown = 0; *p != '\0'; p++) {
        shown += ((unsigned char)*p & 0xc0) != 0x80;
        if (shown >= width) {
            break;
        }
    }
    wpk_buf_append(out, text, (size_t)(p - text));
    wpk_buf_append_text(out, width > 0 ? "…" : "");
}

void wpk_text_table_add(struct wpk_text_table *table, const char *const *cells)
{
    WPK_ASSERT(table->arena != NULL);
    WPK_ASSERT(table->column_count <= WPK_TEXT_TABLE_COLUMNS_MAX);
    if (table->row_count == WPK_TEXT_TABLE_ROWS_MAX) {
        return;
    }
    for (int i = 0; i < table->column_count; i++) {
        table->cells[table->row_count][i] = wpk_arena_copy_text(table->arena, cells[i]);
    }
    table->row_count++;
}

static const char *cell_of(const struct wpk_text_table *table, int row, int column)
{
    const char *cell = table->cells[row][column];

    return cell != NULL ? cell : "?";
}

#define GAP 2     /* blanks between columns */
#define CUT_MIN 4 /* characters that are left of a column that is cut */
#define PROSE_MIN 24

/* How a table is laid out on so many columns. */
struct layout {
    int width[WPK_TEXT_TABLE_COLUMNS_MAX];
    bool shown[WPK_TEXT_TABLE_COLUMNS_MAX];
};

static int total_of(const struct wpk_text_table *table, const struct layout *layout)
{
    int total = -GAP;

    for (int i = 0; i < table->column_count; i++) {
        total += layout->shown[i] ? layout->width[i] + GAP : 0;
    }
    return total;
}

/* The shown column with the highest rank; with `widest` that of rank 0 that takes most room. */
static int pick(const struct wpk_text_table *table, const struct layout *layout, bool widest)
{
    int picked = -1;

    for (int i = 0; i < table->column_count; i++) {
        int size = widest ? layout->width[i] : table->rank[i];
        if (layout->shown[i] &&
            (picked < 0 || size >= (widest ? layout->width[picked] : table->rank[picked]))) {
            picked = i;
        }
    }
    return picked;
}

/* A column of prose that is long enough to be cut; -1: none. */
static int find_prose(const struct wpk_text_table *table, const struct layout *layout)
{
    for (int i = 0; i < table->column_count; i++) {
        if (table->prose[i] && layout->shown[i] && layout->width[i] > PROSE_MIN) {
            return i;
        }
    }
    return -1;
}

static void lay_out(const struct wpk_text_table *table, int width, struct layout *layout)
{
    int natural[WPK_TEXT_TABLE_COLUMNS_MAX];

    *layout = (struct layout){{0}, {0}};
    for (int i = 0; i < table->column_count; i++) {
        layout->shown[i] = true;
        for (int row = 0; row < table->row_count; row++) {
            int cell = wpk_format_width(cell_of(table, row, i));
            layout->width[i] = cell > layout->width[i] ? cell : layout->width[i];
        }
        natural[i] = layout->width[i];
    }
    while (width > 0 && total_of(table, layout) > width) {
        int prose = find_prose(table, layout);
        if (prose >= 0) {
            layout->width[prose]--;
            continue;
        }
        int last = pick(table, layout, false);
        if (table->rank[last] > 0) {
            layout->shown[last] = false;
            continue;
        }
        int widest = pick(table, layout, true);
        if (layout->width[widest] <= CUT_MIN) {
            return;
        }
        layout->width[widest]--;
    }
    /* Give the width that a hidden column left to columns of prose. */
    for (int i = 0; i < table->column_count; i++) {
        while (table->prose[i] && layout->shown[i] && layout->width[i] < natural[i] &&
               total_of(table, layout) < width) {
            layout->width[i]++;
        }
    }
}

void wpk_text_table_print(const struct wpk_text_table *table, int width, struct wpk_buf *out)
{
    struct layout layout;
    struct wpk_buf cell = {0};

    lay_out(table, width, &layout);
    for (int row = 0; row < table->row_count; row++) {
        int blanks = 0; /* owed before the next cell, so that none end a line */
        for (int i = 0; i < table->column_count; i++) {
            if (!layout.shown[i]) {
                continue;
            }
            wpk_buf_reset(&cell);
            wpk_format_cut(cell_of(table, row, i), layout.width[i], &cell);
            int gap = layout.width[i] - wpk_format_width(wpk_buf_text(&cell));
            wpk_buf_printf(out, "%*s%s", blanks + (table->right[i] ? gap : 0), "",
                           wpk_buf_text(&cell));
            blanks = GAP + (table->right[i] ? 0 : gap);
        }
        wpk_buf_append_byte(out, '\n');
    }
    wpk_buf_fini(&cell);
}

static void append_quoted(const char *text, struct wpk_buf *out)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        wpk_buf_append_text(out, text);
        return;
    }
    wpk_buf_append_byte(out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        wpk_buf_append_text(out, *p == '"' ? "\"" : "");
        wpk_buf_append_byte(out, *p);
    }
    wpk_buf_append_byte(out, '"');
}

void wpk_text_table_print_csv(const struct wpk_text_table *table, struct wpk_buf *out)
{
    for (int row = 0; row < table->row_count; row++) {
        for (int i = 0; i < table->column_count; i++) {
            append_quoted(cell_of(table, row, i), out);
            wpk_buf_append_byte(out, i + 1 < table->column_count ? ',' : '\n');
        }
    }
}

void wpk_format_wrap(const char *text, int indent, int width, struct wpk_buf *out)
{
    int column = indent;

    for (const char *p = text; *p != '\0';) {
        size_t word = strcspn(p, " ");
        if (column > indent && column + 1 + (int)word > width) {
            wpk_buf_printf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            wpk_buf_append_byte(out, ' ');
            column++;
        }
        wpk_buf_append(out, p, word);
        column += (int)word;
        p += word + strspn(p + word, " ");
    }
    wpk_buf_append_byte(out, '\n');
}

void wpk_format_word(const char *word, struct wpk_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        wpk_buf_append_text(out, word);
        return;
    }
    wpk_buf_append_byte(out, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            wpk_buf_append_text(out, "'\\''");
        } else {
            wpk_buf_append_byte(out, *word);
        }
    }
    wpk_buf_append_byte(out, '\'');
}
