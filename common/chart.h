/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings as SVG, and the one that shows how a search converged: `wpkctl plot` and the pages of
 * wpkd draw it. Texts are escaped as by wpk_markup_text(). */
#ifndef WPK_COMMON_CHART_H
#define WPK_COMMON_CHART_H

#include "common/buf.h"

/* Append the opening of a drawing. Classes: axis, grid, best (a bold line), vendor (dashed), faint
 * (text), box. With a style the drawing is a file: it has rules for a light and a dark ground, and
 * the ground. Without one it is a part of a page, whose stylesheet has these rules.
 *   shape   style: more rules, or ""; NULL: the drawing is a part of a page */
void wpk_svg_begin(struct wpk_buf *out, int width, int height, const char *style);
/* Append a text; an empty one is none.   shape  anchor: start, middle, end; kind: class or "" */
void wpk_svg_text(struct wpk_buf *out, double x, double y, const char *anchor, const char *kind,
                  const char *text);

#define WPK_CHART_SERIES_MAX 12 /* as many kinds of marks */
#define WPK_CHART_NOTES_MAX 12

struct wpk_chart_point {
    double x;
    double us;
    int series;       /* index of its name and its mark */
    const char *note; /* what a pointer over the mark shows; NULL: nothing */
};

/* Times over a search. Marks tell series apart by their shape, so that the chart can be read
 * without colours. */
struct wpk_chart {
    const char *title;
    const char *x_name;
    const struct wpk_chart_point *points; /* [count], by x */
    int count;
    double x_most;
    double vendor_us;                      /* 0: none */
    char series[WPK_CHART_SERIES_MAX][64]; /* [series_count] */
    int series_count;
    const char *notes_title;
    char notes[WPK_CHART_NOTES_MAX][64]; /* [note_count]: lines below the legend */
    int note_count;
    bool is_file; /* it stands alone; else in a page */
};

/* The index of the series of a name, which is added; the last one if there are too many. A name of
 * no bytes is that of candidates that have several.
 *   shape  name [size] */
int wpk_chart_series(struct wpk_chart *chart, const char *name, size_t size);

/* Append the chart: the points, the best so far and the vendor. With `count` 0 it is empty axes. */
void wpk_chart_draw(const struct wpk_chart *chart, struct wpk_buf *out);

#endif
