/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: checking and cutting text from outside. */
#ifndef WPK_COMMON_UTF8_H
#define WPK_COMMON_UTF8_H

#include "common/err.h"

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
