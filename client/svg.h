/* SPDX-License-Identifier: Apache-2.0 */
/* The style and the texts of SVGs that wpkctl draws. */
#ifndef WPK_CLIENT_SVG_H
#define WPK_CLIENT_SVG_H

#include "common/buf.h"

/* Append the opening of a drawing, a style for a light and a dark ground, and the ground. Classes:
 * axis, grid, best (a bold line), vendor (dashed), faint (text), box.
 *   shape   style: more rules, or "" */
void wpk_svg_begin(struct wpk_buf *out, int width, int height, const char *style);
/* Append a text; an empty one is none.   shape  anchor: start, middle, end; kind: class or "" */
void wpk_svg_text(struct wpk_buf *out, double x, double y, const char *anchor, const char *kind,
                  const char *text);

#endif
