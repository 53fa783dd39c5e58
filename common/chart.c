/* SPDX-License-Identifier: Apache-2.0 */
#include "common/chart.h"

#include "common/markup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 860,
    HEIGHT = 520,
    LEFT = 80,
    RIGHT = 250, /* the legend */
    TOP = 50,
    BOTTOM = 110,
    TICKS = 6
};

struct scale {
    double least_us;
    double most_us;
    double x_most;
};

static double x_of(const struct scale *scale, double x)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * x / scale->x_most;
}

static double y_of(const struct scale *scale, double us)
{
    double share = log(us / scale->least_us) / log(scale->most_us / scale->least_us);
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
}

static struct scale find_scale(const struct wpk_chart *chart)
{
    double least = chart->vendor_us > 0 ? chart->vendor_us : HUGE_VAL;
    double most = chart->vendor_us;
    for (int i = 0; i < chart->count; i++) {
        least = fmin(least, chart->points[i].us);
        most = fmax(most, chart->points[i].us);
    }
    least = most > 0 ? least : 1;
    most = most > 0 ? most : 1;
    return (struct scale){least / 1.1, most * 1.1, fmax(chart->x_most, 1)};
}

static void put_mark(struct wpk_buf *out, int kind, double x, double y, const char *note)
{
    static const char *const paths[WPK_CHART_SERIES_MAX] = {
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
        "M-4 -4h8v8h-8z",
        "M0 -5L5 4H-5z",
        "M0 -5L5 0L0 5L-5 0z",
        "M-4 -4L4 4M-4 4L4 -4",
        "M0 -5V5M-5 0H5",
        "M0 5L5 -4H-5z",
        "M-5 0H5M-3 -4L3 4M-3 4L3 -4",
        "M-4 -4V4M4 -4V4",
        "M-4 -3H4M-4 3H4",
        "M-5 -5h10v10h-10z M-2 -2h4v4h-4z",
        "M-5 0A5 5 0 0 1 5 0z",
    };
    wpk_markup(out, "<path class=\"m%d\" transform=\"translate(%.1f %.1f)\" d=\"%s\"", kind, x, y,
               paths[kind]);
    if (note != NULL) {
        wpk_markup(out, "><title>%s</title></path>\n", note);
    } else {
        wpk_markup_raw(out, "/>\n");
    }
}

static void begin(const struct wpk_chart *chart, struct wpk_buf *out)
{
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#b0a000", "#888888"};
    struct wpk_buf marks = {0};
    wpk_buf_append_text(&marks, "path[class^=m]{fill:none}\n");
    for (int i = 0; i < WPK_CHART_SERIES_MAX; i++) {
        wpk_buf_printf(&marks, "path.m%d{stroke:%s}", i, colours[i % 8]);
    }
    wpk_buf_append_byte(&marks, '\n');
    wpk_svg_begin(out, WIDTH, HEIGHT, chart->is_file ? wpk_buf_text(&marks) : NULL);
    wpk_buf_fini(&marks);
    if (!chart->is_file) {
        wpk_markup(out, "<title>%s</title>\n", chart->title);
    }
}

static void put_axes(const struct wpk_chart *chart, const struct scale *scale, struct wpk_buf *out)
{
    char text[64];
    for (int i = 0; i < TICKS; i++) {
        double share = (double)i / (TICKS - 1);
        double us = scale->least_us * pow(scale->most_us / scale->least_us, share);
        double x = floor(scale->x_most * share);
        wpk_markup(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_of(scale, us),
                   WIDTH - RIGHT);
        snprintf(text, sizeof(text), us < 9999 ? "%.4g" : "%.0f", us);
        wpk_svg_text(out, LEFT - 8, y_of(scale, us) + 4, "end", "", text);
        snprintf(text, sizeof(text), "%.0f", x);
        wpk_svg_text(out, x_of(scale, x), HEIGHT - BOTTOM + 20, "middle", "", text);
    }
    wpk_markup(out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
               WIDTH - RIGHT);
    wpk_svg_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - BOTTOM + 42, "middle", "",
                 chart->x_name);
    wpk_svg_text(out, LEFT, TOP - 12, "middle", "", "time, µs");
    wpk_svg_text(out, (LEFT + WIDTH - RIGHT) / 2.0, TOP - 28, "middle", "", chart->title);
}

static void put_points(const struct wpk_chart *chart, const struct scale *scale,
                       struct wpk_buf *out)
{
    struct wpk_buf line = {0};
    double best = HUGE_VAL;
    for (int i = 0; i < chart->count; i++) {
        const struct wpk_chart_point *point = &chart->points[i];
        double x = x_of(scale, point->x);
        WPK_ASSERT(point->series >= 0 && point->series < WPK_CHART_SERIES_MAX);
        put_mark(out, point->series, x, y_of(scale, point->us), point->note);
        if (point->us < best) {
            wpk_markup(&line, best == HUGE_VAL ? "M%.1f %.1f" : "H%.1fV%.1f", x,
                       y_of(scale, point->us));
            best = point->us;
        }
    }
    if (line.size > 0) {
        wpk_markup_raw(out, "<path class=\"best\" d=\"");
        wpk_markup_raw(out, wpk_buf_text(&line));
        wpk_markup(out, "H%d\"/>\n", WIDTH - RIGHT);
    }
    wpk_buf_fini(&line);
    if (chart->vendor_us > 0) {
        double y = y_of(scale, chart->vendor_us);
        wpk_markup(out, "<path class=\"vendor\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        wpk_svg_text(out, WIDTH - RIGHT - 4, y - 5, "end", "", "vendor");
    }
}

static void put_legend(const struct wpk_chart *chart, struct wpk_buf *out)
{
    double x = WIDTH - RIGHT + 24, y = TOP;
    wpk_markup(out, "<path class=\"best\" d=\"M%.1f %.1fh16\"/>\n", x - 8, y - 4);
    wpk_svg_text(out, x + 14, y, "start", "", "best so far");
    for (int i = 0; i < chart->series_count; i++) {
        y += 20;
        put_mark(out, i, x, y - 4, NULL);
        wpk_svg_text(out, x + 14, y, "start", "", chart->series[i]);
    }
    y += 32;
    wpk_svg_text(out, x - 8, y, "start", "", chart->notes_title);
    for (int i = 0; i < chart->note_count; i++) {
        y += 18;
        wpk_svg_text(out, x, y, "start", "", chart->notes[i]);
    }
}

int wpk_chart_series(struct wpk_chart *chart, const char *name, size_t size)
{
    char text[sizeof(chart->series[0])] = "";
    int i = 0;
    snprintf(text, sizeof(text), "%.*s", size > 0 ? (int)size : 99,
             size > 0 ? name : "several sites");
    while (i < chart->series_count && strcmp(chart->series[i], text) != 0) {
        i++;
    }
    if (i == WPK_CHART_SERIES_MAX) {
        return i - 1;
    }
    memcpy(chart->series[i], text, sizeof(text));
    chart->series_count += i == chart->series_count;
    return i;
}

void wpk_chart_draw(const struct wpk_chart *chart, struct wpk_buf *out)
{
    struct scale scale = find_scale(chart);
    begin(chart, out);
    put_axes(chart, &scale, out);
    put_points(chart, &scale, out);
    put_legend(chart, out);
    wpk_markup_raw(out, "</svg>\n");
}
