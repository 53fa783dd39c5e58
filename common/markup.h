/* SPDX-License-Identifier: Apache-2.0 */
/* HTML and SVG text. Values are escaped wherever they come from; only wpk_markup_raw() appends text
 * as it is. */
#ifndef WPK_COMMON_MARKUP_H
#define WPK_COMMON_MARKUP_H

#include "common/buf.h"

#define WPK_MARKUP_VALUE_MAX ((size_t)256) /* bytes of a value; "…" stands for what is cut off */

/* Append `format`, a literal with markup, with its values: those of %s are escaped as by
 * wpk_markup_text(), numbers are printed as by printf. Other conversions than s d u lld llu f e g,
 * with a precision and without a width, are a bug. */
void wpk_markup(struct wpk_buf *out, const char *format, ...) WPK_PRINTF(2, 3);

/* Append a value of at most `size_max` bytes. It is text between tags and within quoted attributes.
 * U+FFFD stands for each byte that is not UTF-8, for control characters except newline and tab, and
 * for characters that change the direction of other text. */
void wpk_markup_text(struct wpk_buf *out, const char *text, size_t size_max);

/* Append a value of a query or a segment of a path, percent-encoded; at most WPK_MARKUP_VALUE_MAX
 * bytes of it: no name or token of ours is longer. */
void wpk_markup_url(struct wpk_buf *out, const char *text);

/* Append markup: text of this program, or what functions of this page have written. */
void wpk_markup_raw(struct wpk_buf *out, const char *markup);

#endif
