/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl plot: how a search converged, as an SVG: each trial's time by the number of its ask, the
 * best so far, the vendor's time, and how trials ended. Marks tell algorithms apart by their shape,
 * so that it can be read without colours, on a light ground and on a dark one. */
#include "client/command.h"
#include "client/output.h"
#include "client/trial_list.h"
#include "common/fs.h"

#include <inttypes.h>
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
    ALGORITHMS = 12,
    OUTCOMES = 12,
    TICKS = 6
};

struct plot {
    const struct wpk_trial_list *list;
    double least_us, most_us; /* of the axis */
    double asks;
    double vendor_us; /* 0: none */
    char algorithm[ALGORITHMS][64];
    int algorithms;
    char outcome[OUTCOMES][32];
    int outcome_count[OUTCOMES];
    int outcomes;
};

static double x_of(const struct plot *plot, double ask)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * ask / plot->asks;
}

static double y_of(const struct plot *plot, double us)
{
    double share = log(us / plot->least_us) / log(plot->most_us / plot->least_us);
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
}

/* ---- what there is */

static int find_algorithm(struct plot *plot, const char *candidate)
{
    char name[64];
    wpk_listed_trial_gene(candidate, "algorithm", name, sizeof(name));
    for (int i = 0; i < plot->algorithms; i++) {
        if (strcmp(plot->algorithm[i], name) == 0) {
            return i;
        }
    }
    if (plot->algorithms == ALGORITHMS) {
        return ALGORITHMS - 1;
    }
    snprintf(plot->algorithm[plot->algorithms], sizeof(plot->algorithm[0]), "%s",
             name[0] != '\0' ? name : "several sites");
    return plot->algorithms++;
}

static void count_outcome(struct plot *plot, const struct wpk_listed_trial *trial)
{
    const char *name = trial->censored ? "raced out" : trial->outcome;
    int at = 0;
    while (at < plot->outcomes && strcmp(plot->outcome[at], name) != 0) {
        at++;
    }
    if (at == plot->outcomes && plot->outcomes < OUTCOMES) {
        snprintf(plot->outcome[plot->outcomes++], sizeof(plot->outcome[0]), "%s", name);
    }
    plot->outcome_count[at < OUTCOMES ? at : OUTCOMES - 1]++;
}

static void survey(struct plot *plot)
{
    plot->least_us = HUGE_VAL;
    for (int i = 0; i < plot->list->count; i++) {
        const struct wpk_listed_trial *one = &plot->list->trial[i];
        double us = one->median_ns / 1e3;
        bool timed = wpk_listed_trial_is_timed(one);
        if (!one->is_candidate) {
            bool faster = plot->vendor_us == 0 || us < plot->vendor_us;
            plot->vendor_us =
                timed && strcmp(one->provider, "plain") != 0 && faster ? us : plot->vendor_us;
        } else {
            plot->asks = fmax(plot->asks, (double)one->index + 1);
            count_outcome(plot, one);
            (void)find_algorithm(plot, one->candidate);
        }
        if (timed && (one->is_candidate || us == plot->vendor_us)) {
            plot->least_us = fmin(plot->least_us, us);
            plot->most_us = fmax(plot->most_us, us);
        }
    }
    plot->least_us /= 1.1;
    plot->most_us *= 1.1;
    plot->asks = fmax(plot->asks, 1);
}

/* ---- marks */

static void put_mark(struct wpk_buf *out, int kind, double x, double y)
{
    static const char *const paths[] = {
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
    wpk_buf_printf(out, "<path class=\"m%d\" transform=\"translate(%.1f %.1f)\" d=\"%s\"/>\n", kind,
                   x, y, paths[kind]);
}

static void put_style(struct wpk_buf *out)
{
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#b0a000", "#888888"};
    struct wpk_buf marks = {0};

    wpk_buf_append_text(&marks, "path[class^=m]{fill:none}\n");
    for (int i = 0; i < ALGORITHMS; i++) {
        wpk_buf_printf(&marks, "path.m%d{stroke:%s}", i, colours[i % 8]);
    }
    wpk_buf_append_byte(&marks, '\n');
    wpk_svg_begin(out, WIDTH, HEIGHT, wpk_buf_text(&marks));
    wpk_buf_fini(&marks);
}

static void put_axes(const struct plot *plot, struct wpk_buf *out)
{
    char text[128];
    for (int i = 0; i < TICKS; i++) {
        double share = (double)i / (TICKS - 1);
        double us = plot->least_us * pow(plot->most_us / plot->least_us, share);
        double ask = floor(plot->asks * share);
        wpk_buf_printf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_of(plot, us),
                       WIDTH - RIGHT);
        snprintf(text, sizeof(text), "%.4g", us);
        wpk_svg_text(out, LEFT - 8, y_of(plot, us) + 4, "end", "", text);
        snprintf(text, sizeof(text), "%.0f", ask);
        wpk_svg_text(out, x_of(plot, ask), HEIGHT - BOTTOM + 20, "middle", "", text);
    }
    wpk_buf_printf(out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
                   WIDTH - RIGHT);
    wpk_svg_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - BOTTOM + 42, "middle", "",
                 "candidates asked for");
    wpk_svg_text(out, LEFT, TOP - 12, "middle", "", "time, µs");
    snprintf(text, sizeof(text), "%s of job %s", plot->list->op, plot->list->job);
    wpk_svg_text(out, (LEFT + WIDTH - RIGHT) / 2.0, TOP - 28, "middle", "", text);
}

static void put_trials(struct plot *plot, struct wpk_buf *out)
{
    struct wpk_buf line = {0};
    double best = HUGE_VAL;
    for (int i = 0; i < plot->list->count; i++) {
        const struct wpk_listed_trial *one = &plot->list->trial[i];
        double us = one->median_ns / 1e3;
        if (!one->is_candidate || !wpk_listed_trial_is_timed(one)) {
            continue;
        }
        double x = x_of(plot, (double)one->index + 0.5);
        put_mark(out, find_algorithm(plot, one->candidate), x, y_of(plot, us));
        if (us < best) {
            wpk_buf_printf(&line, best == HUGE_VAL ? "M%.1f %.1f" : "H%.1fV%.1f", x,
                           y_of(plot, us));
            best = us;
        }
    }
    if (line.size > 0) {
        wpk_buf_printf(out, "<path class=\"best\" d=\"%sH%d\"/>\n", wpk_buf_text(&line),
                       WIDTH - RIGHT);
    }
    wpk_buf_fini(&line);
    if (plot->vendor_us > 0) {
        wpk_buf_printf(out, "<path class=\"vendor\" d=\"M%d %.1fH%d\"/>\n", LEFT,
                       y_of(plot, plot->vendor_us), WIDTH - RIGHT);
        wpk_svg_text(out, WIDTH - RIGHT - 4, y_of(plot, plot->vendor_us) - 5, "end", "", "vendor");
    }
}

static void put_legend(const struct plot *plot, struct wpk_buf *out)
{
    double x = WIDTH - RIGHT + 24, y = TOP;
    wpk_buf_printf(out, "<path class=\"best\" d=\"M%.1f %.1fh16\"/>\n", x - 8, y - 4);
    wpk_svg_text(out, x + 14, y, "start", "", "best so far");
    for (int i = 0; i < plot->algorithms; i++) {
        y += 20;
        put_mark(out, i, x, y - 4);
        wpk_svg_text(out, x + 14, y, "start", "", plot->algorithm[i]);
    }
    y += 32;
    wpk_svg_text(out, x - 8, y, "start", "", "outcomes");
    for (int i = 0; i < plot->outcomes; i++) {
        char text[64];
        y += 18;
        snprintf(text, sizeof(text), "%d %s", plot->outcome_count[i], plot->outcome[i]);
        wpk_svg_text(out, x, y, "start", "", text);
    }
}

static wpk_err draw(const struct wpk_trial_list *list, const char *path, struct wpk_diag *diag)
{
    struct plot plot = {.list = list};
    struct wpk_buf out = {0};
    if (wpk_trial_list_best(list) < 0) {
        wpk_diag_set(diag, "job %s timed no candidate of %s; wpkctl trials %s --failed says why",
                     list->job, list->op, list->job);
        return WPK_ENOENT;
    }
    survey(&plot);
    put_style(&out);
    put_axes(&plot, &out);
    put_trials(&plot, &out);
    put_legend(&plot, &out);
    wpk_buf_append_text(&out, "</svg>\n");
    wpk_err err = wpk_buf_status(&out);
    if (err == WPK_OK) {
        err = wpk_fs_write(path, out.data, out.size, 0666, diag);
    }
    wpk_buf_fini(&out);
    return err;
}

enum wpk_exit wpk_command_plot(struct wpk_invocation *call)
{
    struct wpk_session_options given = {.need = WPK_SESSION_HISTORY};
    const char *op = NULL, *path = NULL;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(given),
        WPK_ARGS_TEXT("op", "NAME", "an operator of a job that has several", &op),
        WPK_ARGS_OUTPUT("where the SVG goes", &path),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};
    struct wpk_arena arena = {0};
    struct wpk_trial_list list = {0};

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    wpk_err err = WPK_OK;
    if (path == NULL) {
        wpk_diag_set(&call->diag, "-o says where the SVG goes");
        err = WPK_EINVAL;
    }
    if (err == WPK_OK) {
        err = wpk_session_open(call->context, &given, &session, &call->diag);
    }
    if (err == WPK_OK) {
        err =
            wpk_trial_list_fetch(&session, call->args.operands[0], op, &arena, &list, &call->diag);
    }
    err = err == WPK_OK ? draw(&list, path, &call->diag) : err;
    wpk_arena_fini(&arena);
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}
