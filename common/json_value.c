/* SPDX-License-Identifier: Apache-2.0 */
/* A reader's typed strings and numbers: labels, 64-bit numbers, choices, lists. */
#include "common/format.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>

void wpk_json_get_copy(struct wpk_json_reader *reader, const char *key, char *out, size_t out_size)
{
    WPK_ASSERT(out_size > 0);
    const char *text = wpk_json_get_text(reader, key, out_size - 1);
    memcpy(out, text, strlen(text) + 1);
}

void wpk_json_get_label(struct wpk_json_reader *reader, const char *key, char *out, size_t out_size)
{
    wpk_json_get_copy(reader, key, out, out_size);
    for (const char *p = out; *p != '\0'; p++) {
        if (wpk_utf8_is_control(p)) {
            wpk_json_fail(reader, key, WPK_EINVAL, "has a control character");
            return;
        }
    }
}

/* Decimal digits without sign or leading zeros, up to 2^64 - 1. */
static bool parse_u64(const char *text, uint64_t *value)
{
    uint64_t sum = 0;

    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0')) {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(sum, UINT64_C(10), &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum)) {
            return false;
        }
    }
    *value = sum;
    return true;
}

uint64_t wpk_json_get_u64(struct wpk_json_reader *reader, const char *key)
{
    uint64_t value = 0;

    if (wpk_json_kind_of(reader, key) == WPK_JSON_NUMBER) {
        return (uint64_t)wpk_json_get_int(reader, key, 0, WPK_JSON_INT_MAX);
    }
    if (!parse_u64(wpk_json_get_text(reader, key, SIZE_MAX), &value)) {
        wpk_json_fail(reader, key, WPK_EINVAL, "must be a decimal number below 2^64");
    }
    return value;
}

size_t wpk_json_get_choice(struct wpk_json_reader *reader, const char *key,
                           const char *const *names, size_t name_count)
{
    char list[256] = "";
    size_t used = 0;
    const char *text = wpk_json_get_text(reader, key, SIZE_MAX);

    for (size_t i = 0; i < name_count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
        int length = used < sizeof(list) ? snprintf(list + used, sizeof(list) - used, "%s%s",
                                                    i > 0 ? ", " : "", names[i])
                                         : 0;
        used += length > 0 ? (size_t)length : 0;
    }
    wpk_json_fail(reader, key, WPK_EINVAL, "must be one of: %s", list);
    return 0;
}

size_t wpk_json_get_ints(struct wpk_json_reader *reader, const char *key, int64_t min, int64_t max,
                         int64_t *out, size_t out_max)
{
    size_t count = 0;

    if (wpk_json_count(reader, key) > out_max) {
        wpk_json_fail(reader, key, WPK_ERANGE, "must have at most %zu items", out_max);
        return 0;
    }
    wpk_json_enter_array(reader, key);
    while (wpk_json_next(reader)) {
        out[count++] = wpk_json_get_int(reader, NULL, min, max);
    }
    wpk_json_leave(reader);
    return wpk_json_status(reader) == WPK_OK ? count : 0;
}
