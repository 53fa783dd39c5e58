/* SPDX-License-Identifier: Apache-2.0 */
#include "common/markup.h"

#include "common/format.h"

#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* True for U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069: they order the text
 * around them anew. */
static bool changes_direction(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    if (length == 2) {
        return at[0] == 0xd8 && at[1] == 0x9c;
    }
    if (length != 3 || at[0] != 0xe2) {
        return false;
    }
    return (at[1] == 0x80 &&
            (at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xaa && at[2] <= 0xae))) ||
           (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
}

static const char *escape_of(char byte)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void wpk_markup_text(struct wpk_buf *out, const char *text, size_t size_max)
{
    size_t size = strnlen(text, size_max + 4); /* the last character is seen as a whole */
    size_t at = 0;
    while (at < size && at < size_max) {
        size_t length = wpk_utf8_length(text + at, size - at);
        if (at + (length > 0 ? length : 1) > size_max) {
            break;
        }
        const char *escape = length == 1 ? escape_of(text[at]) : NULL;
        bool keeps = text[at] == '\n' || text[at] == '\t';
        if (length == 0 || (!keeps && wpk_utf8_is_control(text + at)) ||
            changes_direction(text + at, length)) {
            escape = REPLACEMENT;
        }
        if (escape != NULL) {
            wpk_buf_append_text(out, escape);
        } else {
            wpk_buf_append(out, text + at, length);
        }
        at += length > 0 ? length : 1;
    }
    if (at < size) {
        wpk_buf_append_text(out, "…");
    }
}

/* Append one number with the conversion `spec`, which ends in `kind`. */
static void append_number(struct wpk_buf *out, const char *spec, char kind, bool is_long,
                          va_list *args)
{
    char text[64] = "";
    /* The conversion is one of a literal's, which the compiler has checked. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (kind == 'f' || kind == 'e' || kind == 'g') {
        snprintf(text, sizeof text, spec, va_arg(*args, double));
    } else if (is_long) {
        snprintf(text, sizeof text, spec, va_arg(*args, long long));
    } else {
        snprintf(text, sizeof text, spec, va_arg(*args, int));
    }
#pragma GCC diagnostic pop
    wpk_buf_append_text(out, text);
}

void wpk_markup(struct wpk_buf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    for (const char *at = format; *at != '\0';) {
        size_t plain = strcspn(at, "%");
        wpk_buf_append(out, at, plain);
        at += plain;
        if (at[0] == '\0') {
            break;
        }
        char spec[16];
        size_t size = 1 + strspn(at + 1, ".0123456789l");
        char kind = at[size];
        WPK_ASSERT(size + 1 < sizeof spec && kind != '\0' && strchr("sdufeg%", kind) != NULL);
        memcpy(spec, at, size + 1);
        spec[size + 1] = '\0';
        if (kind == 's') {
            wpk_markup_text(out, va_arg(args, const char *), WPK_MARKUP_VALUE_MAX);
        } else if (kind == '%') {
            wpk_buf_append_byte(out, '%');
        } else {
            append_number(out, spec, kind, strstr(spec, "ll") != NULL, &args);
        }
        at += size + 1;
    }
    va_end(args);
}

void wpk_markup_url(struct wpk_buf *out, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
    const char *end = text + strnlen(text, WPK_MARKUP_VALUE_MAX);
    for (const char *at = text; at < end; at++) {
        if (strchr(plain, *at) != NULL) {
            wpk_buf_append_byte(out, *at);
        } else {
            wpk_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*at);
        }
    }
}

void wpk_markup_raw(struct wpk_buf *out, const char *markup)
{
    wpk_buf_append_text(out, markup);
}
