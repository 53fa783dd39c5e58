/* SPDX-License-Identifier: Apache-2.0 */
#include "common/format.h"

size_t wpk_utf8_length(const char *text, size_t size)
{
    /* Indexed by sequence length: the smallest code point that needs it. */
    static const unsigned code_min[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;

    if (size == 0) {
        return 0;
    }
    if (bytes[0] < 0x80) {
        return 1;
    }
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc0 || bytes[0] > 0xf4 || length > size) {
        return 0;
    }
    unsigned code = bytes[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (bytes[i] & 0x3fU);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < code_min[length] || code > 0x10ffff || surrogate ? 0 : length;
}

size_t wpk_utf8_check(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t length = wpk_utf8_length(text + at, size - at);
        if (length == 0) {
            break;
        }
        at += length;
    }
    return at;
}

bool wpk_utf8_is_control(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    bool c1 = bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] < 0xa0;
    return bytes[0] < 0x20 || bytes[0] == 0x7f || c1;
}

size_t wpk_utf8_encode(unsigned code, char out[4])
{
    WPK_ASSERT(code <= 0x10ffff);
    WPK_ASSERT(code < 0xd800 || code > 0xdfff);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    /* The leading byte starts with as many ones as the sequence has bytes. */
    out[0] = (char)((0xf00U >> length & 0xffU) | code);
    return length;
}
