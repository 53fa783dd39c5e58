/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: text grows as values are put, so there is no tree to build and walk.
 *
 * cJSON's printer is not used: it writes 9007199254740991 as 9.00719925474099e+15 and
 * 0.30000000000000004 as 0.3, and a printed number has to read back as the same number. */
#include "common/json.h"

#include "common/clock.h"
#include "common/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 2

struct wpk_json_writer {
    struct wpk_buf text; /* compact, the root still open */
    size_t depth;        /* containers that are open */
    bool is_array[WPK_JSON_DEPTH_MAX];
    bool is_empty[WPK_JSON_DEPTH_MAX];
};

static void open_container(struct wpk_json_writer *writer, bool is_array)
{
    WPK_ASSERT(writer->depth < WPK_JSON_DEPTH_MAX);
    writer->is_array[writer->depth] = is_array;
    writer->is_empty[writer->depth] = true;
    writer->depth++;
    wpk_buf_append_byte(&writer->text, is_array ? '[' : '{');
}

struct wpk_json_writer *wpk_json_writer_new_object(void)
{
    struct wpk_json_writer *writer = calloc(1, sizeof(*writer));

    if (writer != NULL) {
        open_container(writer, false);
    }
    return writer;
}

void wpk_json_writer_free(struct wpk_json_writer *writer)
{
    if (writer != NULL) {
        wpk_buf_fini(&writer->text);
        free(writer);
    }
}

void wpk_json_writer_fail(struct wpk_json_writer *writer, wpk_err err)
{
    if (writer != NULL && writer->text.err == WPK_OK) {
        writer->text.err = err;
    }
}

static void append_escaped(struct wpk_buf *out, unsigned char c)
{
    static const char short_names[] = "btn\0fr"; /* from \b, 8, to \r, 13; \v has none */

    if (c == '"' || c == '\\') {
        wpk_buf_printf(out, "\\%c", c);
    } else if (c >= 8 && c <= 13 && short_names[c - 8] != '\0') {
        wpk_buf_printf(out, "\\%c", short_names[c - 8]);
    } else {
        wpk_buf_printf(out, "\\u%04x", c);
    }
}

/* Plain stretches are copied whole; they are nearly all of every string. */
static void append_quoted(struct wpk_buf *out, const char *value, size_t size)
{
    size_t plain = 0;

    wpk_buf_append_byte(out, '"');
    for (size_t at = 0; at < size;) {
        unsigned char c = (unsigned char)value[at];
        size_t length = wpk_utf8_length(value + at, size - at);
        /* A NUL is legal JSON when escaped, but no reader of C strings survives it. */
        length = c == 0 ? 0 : length;
        bool is_plain = length > 0 && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
        if (!is_plain) {
            wpk_buf_append(out, value + plain, at - plain);
            if (length == 0) {
                wpk_buf_append_text(out, "\xef\xbf\xbd"); /* U+FFFD */
            } else {
                append_escaped(out, c);
            }
        }
        at += length > 0 ? length : 1;
        plain = is_plain ? plain : at;
    }
    wpk_buf_append(out, value + plain, size - plain);
    wpk_buf_append_byte(out, '"');
}

/* The comma and the name before a value; false if there is no writer. */
static bool begin_value(struct wpk_json_writer *writer, const char *key)
{
    if (writer == NULL) {
        return false;
    }
    WPK_ASSERT(writer->depth > 0);
    size_t inner = writer->depth - 1;
    WPK_ASSERT((key == NULL) == writer->is_array[inner]);
    if (!writer->is_empty[inner]) {
        wpk_buf_append_byte(&writer->text, ',');
    }
    writer->is_empty[inner] = false;
    if (key != NULL) {
        append_quoted(&writer->text, key, strlen(key));
        wpk_buf_append_byte(&writer->text, ':');
    }
    return true;
}

void wpk_json_begin_object(struct wpk_json_writer *writer, const char *key)
{
    if (begin_value(writer, key)) {
        open_container(writer, false);
    }
}

void wpk_json_begin_array(struct wpk_json_writer *writer, const char *key)
{
    if (begin_value(writer, key)) {
        open_container(writer, true);
    }
}

void wpk_json_end(struct wpk_json_writer *writer)
{
    if (writer != NULL) {
        WPK_ASSERT(writer->depth > 1); /* the root ends when it is printed */
        writer->depth--;
        wpk_buf_append_byte(&writer->text, writer->is_array[writer->depth] ? ']' : '}');
    }
}

void wpk_json_put_raw(struct wpk_json_writer *writer, const char *key, const char *text)
{
    if (begin_value(writer, key)) {
        wpk_buf_append_text(&writer->text, text != NULL ? text : "null");
    }
}

void wpk_json_put_null(struct wpk_json_writer *writer, const char *key)
{
    wpk_json_put_raw(writer, key, NULL);
}

void wpk_json_put_bool(struct wpk_json_writer *writer, const char *key, bool value)
{
    wpk_json_put_raw(writer, key, value ? "true" : "false");
}

void wpk_json_put_int(struct wpk_json_writer *writer, const char *key, int64_t value)
{
    WPK_ASSERT(value <= WPK_JSON_INT_MAX);
    WPK_ASSERT(value >= -WPK_JSON_INT_MAX);
    if (begin_value(writer, key)) {
        wpk_buf_printf(&writer->text, "%lld", (long long)value);
    }
}

void wpk_json_put_u64(struct wpk_json_writer *writer, const char *key, uint64_t value)
{
    if (begin_value(writer, key)) {
        wpk_buf_printf(&writer->text, "\"%llu\"", (unsigned long long)value);
    }
}

void wpk_json_put_real(struct wpk_json_writer *writer, const char *key, double value)
{
    char text[32];

    WPK_ASSERT(isfinite(value));
    /* 17 digits always read back the same; nearly always fewer do. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    wpk_json_put_raw(writer, key, text);
}

void wpk_json_put_bytes(struct wpk_json_writer *writer, const char *key, const char *value,
                        size_t size)
{
    WPK_ASSERT(value != NULL || size == 0);
    if (begin_value(writer, key)) {
        append_quoted(&writer->text, value, size);
    }
}

void wpk_json_put_text(struct wpk_json_writer *writer, const char *key, const char *value)
{
    wpk_json_put_bytes(writer, key, value, strlen(value));
}

void wpk_json_put_text_or_null(struct wpk_json_writer *writer, const char *key, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        wpk_json_put_text(writer, key, value);
    } else {
        wpk_json_put_null(writer, key);
    }
}

void wpk_json_put_wall(struct wpk_json_writer *writer, const char *key, uint64_t wall_ns)
{
    char text[WPK_CLOCK_TEXT_SIZE] = "";
    if (wall_ns != 0) {
        wpk_clock_format(wall_ns, text);
    }
    wpk_json_put_text_or_null(writer, key, text);
}

void wpk_json_put_ints(struct wpk_json_writer *writer, const char *key, const int64_t *values,
                       size_t value_count)
{
    wpk_json_begin_array(writer, key);
    for (size_t i = 0; i < value_count; i++) {
        wpk_json_put_int(writer, NULL, values[i]);
    }
    wpk_json_end(writer);
}

static void break_line(struct wpk_buf *out, size_t depth)
{
    wpk_buf_printf(out, "\n%*s", (int)(depth * INDENT), "");
}

/* True if the array that starts here holds only scalars; it then stays on its line. */
static bool is_flat_array(const char *text)
{
    if (*text != '[') {
        return false;
    }
    size_t length = strcspn(text + 1, "[{]\"");
    return text[1 + length] == ']';
}

/* Lay out compact text: a second pass, so that the first need not know who will read it. */
static void append_pretty(struct wpk_buf *out, const char *text)
{
    size_t depth = 0;
    bool in_string = false;
    bool flat = false;

    for (const char *p = text; *p != '\0'; p++) {
        bool closing = !in_string && (*p == '}' || *p == ']');
        if (closing) {
            depth--;
            if (!flat && p[-1] != '{' && p[-1] != '[') {
                break_line(out, depth);
            }
            flat = false;
        }
        wpk_buf_append_byte(out, *p);
        if (in_string) {
            if (*p == '\\') {
                wpk_buf_append_byte(out, *++p);
            } else if (*p == '"') {
                in_string = false;
            }
        } else if (*p == '"') {
            in_string = true;
        } else if (*p == '{' || *p == '[') {
            depth++;
            flat = is_flat_array(p);
            if (!flat && p[1] != '}' && p[1] != ']') {
                break_line(out, depth);
            }
        } else if (*p == ',' && flat) {
            wpk_buf_append_byte(out, ' ');
        } else if (*p == ',') {
            break_line(out, depth);
        } else if (*p == ':') {
            wpk_buf_append_byte(out, ' ');
        }
    }
    wpk_buf_append_byte(out, '\n');
}

wpk_err wpk_json_print(const struct wpk_json_writer *writer, bool pretty, struct wpk_buf *out)
{
    if (writer == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_buf_status(&writer->text);
    if (err != WPK_OK) {
        return err;
    }
    WPK_ASSERT(writer->depth == 1);
    char closing = writer->is_array[0] ? ']' : '}';
    if (!pretty) {
        wpk_buf_append(out, writer->text.data, writer->text.size);
        wpk_buf_append_byte(out, closing);
        return wpk_buf_status(out);
    }
    struct wpk_buf whole = {0};
    wpk_buf_append(&whole, writer->text.data, writer->text.size);
    wpk_buf_append_byte(&whole, closing);
    err = wpk_buf_status(&whole);
    if (err == WPK_OK) {
        append_pretty(out, wpk_buf_text(&whole));
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&whole);
    return err;
}

wpk_err wpk_json_finish(struct wpk_json_writer *writer, bool pretty, struct wpk_buf *out)
{
    wpk_err err = wpk_json_print(writer, pretty, out);
    wpk_json_writer_free(writer);
    return err;
}

wpk_err wpk_json_puts(struct wpk_json_writer *writer, bool pretty)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_json_finish(writer, pretty, &text);
    if (err == WPK_OK) {
        puts(wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
    return err;
}
