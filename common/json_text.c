/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_text.h"

#include "common/format.h"

#include <limits.h>
#include <string.h>

struct scan {
    const char *text;
    const char *at;
    const char *end;
    int depth_left;
    struct wpk_diag *diag;
};

static bool scan_value(struct scan *scan, wpk_err *err);

static void position_of(const struct scan *scan, const char *at, int *line, int *column)
{
    *line = 1;
    *column = 1;
    for (const char *p = scan->text; p < at; p++) {
        if (*p == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            /* Continuation bytes belong to the character before them. */
            ++*column;
        }
    }
}

static bool fail(struct scan *scan, wpk_err *err, const char *what)
{
    int line;
    int column;

    position_of(scan, scan->at, &line, &column);
    wpk_diag_set_at(scan->diag, line, column, "%s",
                    scan->at == scan->end ? "text ends early" : what);
    *err = WPK_EPARSE;
    return false;
}

/* The next byte, or 0 at the end. A real NUL is accepted nowhere, so the two may look alike. */
static char peek(const struct scan *scan)
{
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool accept(struct scan *scan, char c)
{
    if (scan->at == scan->end || *scan->at != c) {
        return false;
    }
    scan->at++;
    return true;
}

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->end && memchr(" \t\n\r", *scan->at, 4) != NULL) {
        scan->at++;
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool scan_digits(struct scan *scan)
{
    const char *first = scan->at;

    while (is_digit(peek(scan))) {
        scan->at++;
    }
    return scan->at > first;
}

static bool scan_number(struct scan *scan, wpk_err *err)
{
    accept(scan, '-');
    if (accept(scan, '0')) {
        if (is_digit(peek(scan))) {
            return fail(scan, err, "a number does not start with 0");
        }
    } else if (!scan_digits(scan)) {
        return fail(scan, err, "a digit is missing");
    }
    if (accept(scan, '.') && !scan_digits(scan)) {
        return fail(scan, err, "a digit is missing after the point");
    }
    if (accept(scan, 'e') || accept(scan, 'E')) {
        if (!accept(scan, '+')) {
            accept(scan, '-');
        }
        if (!scan_digits(scan)) {
            return fail(scan, err, "a digit is missing in the exponent");
        }
    }
    return true;
}

/* Four hex digits; -1 if they are not there. */
static int read_hex4(const char *at, const char *end)
{
    int code = 0;

    if (end - at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = is_digit(c)              ? c - '0'
                    : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                    : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                             : -1;
        if (digit < 0) {
            return -1;
        }
        code = code << 4 | digit;
    }
    return code;
}

/* The code point of the \u escape that starts at `at`, with the second half of a surrogate pair;
 * 0 for a NUL and for a lone half, which no string may contain. */
static unsigned read_unicode_escape(const char *at, const char *end, size_t *size)
{
    int high = read_hex4(at + 2, end);

    *size = 6;
    if (high < 0xd800 || high > 0xdfff) {
        return high > 0 ? (unsigned)high : 0;
    }
    if (high > 0xdbff || end - at < 12 || at[6] != '\\' || at[7] != 'u') {
        return 0;
    }
    int low = read_hex4(at + 8, end);
    if (low < 0xdc00 || low > 0xdfff) {
        return 0;
    }
    *size = 12;
    return 0x10000U + (((unsigned)high & 0x3ff) << 10) + ((unsigned)low & 0x3ff);
}

static bool scan_escape(struct scan *scan, wpk_err *err)
{
    size_t size = 2;

    if (scan->end - scan->at < 2) {
        scan->at = scan->end;
        return fail(scan, err, "");
    }
    if (scan->at[1] == 'u') {
        if (read_unicode_escape(scan->at, scan->end, &size) == 0) {
            return fail(scan, err, "this \\u escape is not a character that text may contain");
        }
    } else if (memchr("\"\\/bfnrt", scan->at[1], 8) == NULL) {
        return fail(scan, err, "unknown escape in a string");
    }
    scan->at += size;
    return true;
}

static bool scan_string(struct scan *scan, wpk_err *err)
{
    if (!accept(scan, '"')) {
        return fail(scan, err, "a string in double quotes is expected here");
    }
    while (scan->at < scan->end && *scan->at != '"') {
        if (*scan->at == '\\') {
            if (!scan_escape(scan, err)) {
                return false;
            }
            continue;
        }
        if ((unsigned char)*scan->at < 0x20) {
            return fail(scan, err, "a control character in a string has to be escaped");
        }
        size_t length = wpk_utf8_length(scan->at, (size_t)(scan->end - scan->at));
        if (length == 0) {
            return fail(scan, err, "not valid UTF-8");
        }
        scan->at += length;
    }
    return accept(scan, '"') || fail(scan, err, "");
}

static bool scan_word(struct scan *scan, const char *word, wpk_err *err)
{
    size_t length = strlen(word);

    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0) {
        bool marked = scan->end - scan->at >= 3 && memcmp(scan->at, "\xef\xbb\xbf", 3) == 0;
        return fail(scan, err,
                    marked ? "a byte order mark; save the text as UTF-8 without one"
                           : "a value is expected here");
    }
    scan->at += length;
    return true;
}

/* The name of a member and the colon behind it. */
static bool scan_name(struct scan *scan, wpk_err *err)
{
    skip_blanks(scan);
    if (!scan_string(scan, err)) {
        return false;
    }
    skip_blanks(scan);
    return accept(scan, ':') || fail(scan, err, "':' is expected here");
}

static bool scan_container(struct scan *scan, bool is_object, wpk_err *err)
{
    char closing = is_object ? '}' : ']';

    scan->at++;
    skip_blanks(scan);
    if (accept(scan, closing)) {
        return true;
    }
    do {
        if (is_object && !scan_name(scan, err)) {
            return false;
        }
        if (!scan_value(scan, err)) {
            return false;
        }
        skip_blanks(scan);
    } while (accept(scan, ','));
    return accept(scan, closing) ||
           fail(scan, err,
                is_object ? "',' or '}' is expected here" : "',' or ']' is expected here");
}

static bool scan_value(struct scan *scan, wpk_err *err)
{
    skip_blanks(scan);
    char c = peek(scan);
    if (c == '{' || c == '[') {
        if (scan->depth_left == 0) {
            fail(scan, err, "nested too deeply");
            *err = WPK_ERANGE;
            return false;
        }
        scan->depth_left--;
        bool good = scan_container(scan, c == '{', err);
        scan->depth_left++;
        return good;
    }
    if (c == '"') {
        return scan_string(scan, err);
    }
    if (c == '-' || is_digit(c)) {
        return scan_number(scan, err);
    }
    return scan_word(scan, c == 't' ? "true" : c == 'f' ? "false" : "null", err);
}

wpk_err wpk_json_check(const char *text, size_t size, int depth_max, struct wpk_diag *diag)
{
    WPK_ASSERT(text != NULL || size == 0);
    WPK_ASSERT(depth_max > 0);
    if (text == NULL) {
        text = "";
    }
    struct scan scan = {
        .text = text, .at = text, .end = text + size, .depth_left = depth_max, .diag = diag};
    wpk_err err = WPK_OK;

    if (scan_value(&scan, &err)) {
        skip_blanks(&scan);
        if (scan.at < scan.end) {
            fail(&scan, &err, "nothing may follow the value");
        }
    }
    return err;
}

/* True if the quoted string at `at` is `key` once its escapes are undone. */
static bool name_equals(const char *at, const char *end, const char *key)
{
    static const char escapes[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    size_t key_left = strlen(key);

    for (at++; at < end && *at != '"';) {
        char bytes[4] = {*at};
        size_t byte_count = 1;
        size_t size = 1;
        if (at[0] == '\\' && at[1] == 'u') {
            byte_count = wpk_utf8_encode(read_unicode_escape(at, end, &size), bytes);
        } else if (at[0] == '\\') {
            bytes[0] = meanings[strchr(escapes, at[1]) - escapes];
            size = 2;
        }
        if (byte_count > key_left || memcmp(key, bytes, byte_count) != 0) {
            return false;
        }
        key += byte_count;
        key_left -= byte_count;
        at += size;
    }
    return key_left == 0;
}

/* With `scan` at a container, find the child that `step` names; where it starts, and its name. */
static bool find_child(struct scan *scan, const struct wpk_json_step *step, const char **child,
                       const char **name)
{
    bool is_object = peek(scan) == '{';
    bool found = false;
    wpk_err err = WPK_OK;

    if ((!is_object && peek(scan) != '[') || is_object != (step->key != NULL)) {
        return false;
    }
    scan->at++;
    skip_blanks(scan);
    for (size_t i = 0; peek(scan) != '}' && peek(scan) != ']'; i++) {
        const char *this_name = scan->at;
        if (is_object) {
            scan_name(scan, &err);
            skip_blanks(scan);
        }
        if (is_object ? name_equals(this_name, scan->end, step->key) : i == step->index) {
            *child = scan->at;
            *name = this_name;
            found = true;
        }
        scan_value(scan, &err);
        WPK_ASSERT(err == WPK_OK);
        skip_blanks(scan);
        accept(scan, ',');
        skip_blanks(scan);
    }
    return found;
}

bool wpk_json_locate(const char *text, size_t size, const struct wpk_json_step *steps,
                     size_t step_count, struct wpk_json_place *place)
{
    /* The check has bounded the depth. */
    struct scan scan = {.text = text, .at = text, .end = text + size, .depth_left = INT_MAX};
    bool found = true;
    wpk_err err = WPK_OK;

    skip_blanks(&scan);
    const char *value = scan.at;
    const char *name = scan.at;
    for (size_t i = 0; i < step_count && found; i++) {
        scan.at = value;
        found = find_child(&scan, &steps[i], &value, &name);
    }
    scan.at = value;
    scan_value(&scan, &err);
    *place = (struct wpk_json_place){.offset = (size_t)(value - text),
                                     .size = (size_t)(scan.at - value)};
    position_of(&scan, value, &place->line, &place->column);
    position_of(&scan, name, &place->key_line, &place->key_column);
    return found;
}

size_t wpk_json_skip(const char *text, size_t size, size_t offset, size_t count)
{
    struct scan scan = {
        .text = text, .at = text + offset, .end = text + size, .depth_left = INT_MAX};
    wpk_err err = WPK_OK;

    WPK_ASSERT(offset < size);
    for (size_t i = 0; i < count; i++) {
        scan_value(&scan, &err);
        skip_blanks(&scan);
        bool more = accept(&scan, ',');
        WPK_ASSERT(err == WPK_OK && more);
        skip_blanks(&scan);
    }
    return (size_t)(scan.at - text);
}
