/* SPDX-License-Identifier: Apache-2.0 */
#include "client/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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
        snprintf(out, WPK_FORMAT_SIZE, "%.0f", value);
    } else {
        format_scaled(value, "", out);
    }
}

/* Characters, not bytes: µ and ± are two bytes and one column. */
static int width_of(const char *text)
{
    int width = 0;

    for (const char *p = text; *p != '\0'; p++) {
        width += ((unsigned char)*p & 0xc0) != 0x80;
    }
    return width;
}

void wpk_table_add(struct wpk_table *table, const char *const *cells)
{
    WPK_ASSERT(table->arena != NULL);
    WPK_ASSERT(table->column_count <= WPK_TABLE_COLUMNS_MAX);
    if (table->row_count == WPK_TABLE_ROWS_MAX) {
        return;
    }
    for (int i = 0; i < table->column_count; i++) {
        table->cells[table->row_count][i] = wpk_arena_copy_text(table->arena, cells[i]);
    }
    table->row_count++;
}

static const char *cell_of(const struct wpk_table *table, int row, int column)
{
    const char *cell = table->cells[row][column];

    return cell != NULL ? cell : "?";
}

void wpk_table_print(const struct wpk_table *table, struct wpk_buf *out)
{
    int widths[WPK_TABLE_COLUMNS_MAX] = {0};

    for (int row = 0; row < table->row_count; row++) {
        for (int i = 0; i < table->column_count; i++) {
            int width = width_of(cell_of(table, row, i));
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    for (int row = 0; row < table->row_count; row++) {
        for (int i = 0; i < table->column_count; i++) {
            const char *cell = cell_of(table, row, i);
            int gap = widths[i] - width_of(cell);
            bool last = i == table->column_count - 1;
            wpk_buf_printf(out, "%*s%s%*s%s", table->right[i] ? gap : 0, "", cell,
                           table->right[i] || last ? 0 : gap, "", last ? "\n" : "  ");
        }
    }
}
