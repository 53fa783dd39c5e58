/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, as far as text from outside has to be checked or cut. */
#ifndef WPK_COMMON_UTF8_H
#define WPK_COMMON_UTF8_H

#include "common/err.h"

/* Bytes of the well-formed character at the start of `text`, 1 to 4; 0 if there is none: overlong
 * forms, surrogates and what lies past U+10FFFF are not well formed, nor is an empty text. */
size_t wpk_utf8_length(const char *text, size_t size);

/* Offset of the first byte that is not well formed; `size` if all are. */
size_t wpk_utf8_check(const char *text, size_t size);

/* Is what `text`, well formed or not, begins with a control character (C0, DEL, C1)? A terminal
 * obeys those instead of showing them. */
bool wpk_utf8_is_control(const char *text);

/* Encode a code point (not a surrogate) and return its length. */
size_t wpk_utf8_encode(unsigned code, char out[4]);

#endif
