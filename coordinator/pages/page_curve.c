/* SPDX-License-Identifier: Apache-2.0 */
/* The search of an operator: how it converged, how trials ended, the best of them, and a page of
 * all. */
#include "coordinator/pages/pages.h"

#include "common/chart.h"
#include "common/format.h"
#include "common/markup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEST_SHOWN 10
#define GENES_SHOWN 16
#define VALUES_SHOWN 8

/* ---- the chart */

static void put_point(struct wpk_chart *chart, struct wpk_chart_point *points,
                      const struct wpk_page_job_view *view, const struct wpk_curve_point *point)
{
    double x = view->by_seconds ? point->at_s : (double)point->ask;
    const char *name = strcmp(view->by, "source") == 0 ? point->source : point->strategy;
    size_t size = strlen(name);
    if (strcmp(view->by, "algorithm") == 0) {
        name = wpk_api_trial_gene(point->candidate, "algorithm", 9, &size);
    }
    x = x > 0 ? x : 0;
    points[chart->count++] = (struct wpk_chart_point){x, (double)point->best_ns / 1e3,
                                                      wpk_chart_series(chart, name, size), NULL};
    chart->x_most = x > chart->x_most ? x : chart->x_most;
}

static void put_chart(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    const struct wpk_page_curve *curve = view->curve;
    const struct wpk_api_op *op = &view->job->ops[view->op];
    struct wpk_chart_point *points = WPK_DEMAND(calloc(2 * WPK_CURVE_BUCKETS_MAX, sizeof *points));
    struct wpk_chart chart = {.title = op->name,
                              .x_name = view->by_seconds ? "seconds since the search began"
                                                         : "candidates asked for",
                              .points = points,
                              .vendor_us = (double)op->baseline.time.median_ns / 1e3,
                              .notes_title = "outcomes"};
    for (int i = 0; i < curve->point_count; i++) {
        put_point(&chart, points, view, &curve->points[i]);
    }
    for (int i = 0; i < curve->rival_count; i++) {
        put_point(&chart, points, view, &curve->rivals[i]);
    }
    qsort(points, (size_t)chart.count, sizeof points[0], wpk_real_compare);
    for (int i = 0; i < curve->outcome_count && i < WPK_CHART_NOTES_MAX; i++) {
        snprintf(chart.notes[chart.note_count++], sizeof chart.notes[0], "%llu %s",
                 (unsigned long long)curve->outcomes[i].count, curve->outcomes[i].outcome);
    }
    wpk_chart_draw(&chart, out);
    free(points);
}

void wpk_page_op_link(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    wpk_markup_raw(out, "job?id=");
    wpk_markup_url(out, view->job->id);
    wpk_markup_raw(out, "&amp;op=");
    wpk_markup_url(out, view->job->ops[view->op].name);
}

/* A choice of what the chart shows: a link unless it is what is shown. */
static void put_choice(struct wpk_buf *out, const struct wpk_page_job_view *view, const char *by,
                       bool by_seconds, const char *text)
{
    if (strcmp(by, view->by) == 0 && by_seconds == view->by_seconds) {
        wpk_markup(out, " <strong>%s</strong>", text);
        return;
    }
    wpk_markup_raw(out, " <a href=\"");
    wpk_page_op_link(out, view);
    wpk_markup(out, "&amp;by=%s%s\">", by, by_seconds ? "&axis=seconds" : "");
    wpk_markup(out, "%s</a>", text);
}

static void put_choices(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    wpk_markup_raw(out, "<p>Marks are the best of each stretch of trials, by");
    put_choice(out, view, "algorithm", view->by_seconds, "algorithm");
    put_choice(out, view, "source", view->by_seconds, "source");
    put_choice(out, view, "strategy", view->by_seconds, "strategy");
    wpk_markup_raw(out, ", over");
    put_choice(out, view, view->by, false, "trials");
    put_choice(out, view, view->by, true, "seconds");
    wpk_markup(out, ". The strategy is %s%s.</p>\n", view->curve->points[0].strategy,
               view->curve->rival_count > 0
                   ? "; of others, marks are what improved their last search of this operator"
                   : "");
}

/* ---- tables */

static int compare_time(const void *a, const void *b)
{
    const struct wpk_curve_point *const *x = a, *const *y = b;
    return ((*x)->best_ns > (*y)->best_ns) - ((*x)->best_ns < (*y)->best_ns);
}

static void put_best(struct wpk_buf *out, const struct wpk_page_curve *curve)
{
    const struct wpk_curve_point *order[WPK_CURVE_BUCKETS_MAX];
    for (int i = 0; i < curve->point_count; i++) {
        order[i] = &curve->points[i];
    }
    qsort(order, (size_t)curve->point_count, sizeof order[0], compare_time);
    wpk_page_begin_table(out, "best", "The best of their stretches", "#Ask|#Time|Candidate");
    for (int i = 0; i < curve->point_count && i < BEST_SHOWN; i++) {
        wpk_markup_raw(out, "<tr>");
        wpk_page_cell_count(out, (int64_t)order[i]->ask);
        wpk_page_cell_time(out, order[i]->best_ns, 0);
        wpk_page_cell(out, order[i]->candidate);
        wpk_markup_raw(out, "</tr>\n");
    }
    wpk_page_end_table(out);
    if (curve->point_count > 1) {
        wpk_markup(out, "<p>Spread: the slowest of these stretches took %.1f times the best.</p>\n",
                   (double)order[curve->point_count - 1]->best_ns / (double)order[0]->best_ns);
    }
}

static void put_outcomes(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    const struct wpk_page_curve *curve = view->curve;
    wpk_page_begin_table(out, "outcomes", "How trials ended", "Outcome|#Trials|The last one's log");
    for (int i = 0; i < curve->outcome_count; i++) {
        wpk_markup_raw(out, "<tr>");
        if (view->is_report) {
            wpk_markup(out, "<td>%s</td>", curve->outcomes[i].outcome);
        } else {
            wpk_markup_raw(out, "<td><a href=\"");
            wpk_page_op_link(out, view);
            wpk_markup_raw(out, "&amp;outcome=");
            wpk_markup_url(out, curve->outcomes[i].outcome);
            wpk_markup(out, "#trials\">%s</a></td>", curve->outcomes[i].outcome);
        }
        wpk_page_cell_count(out, (int64_t)curve->outcomes[i].count);
        wpk_page_cell(out, curve->outcomes[i].log);
        wpk_markup_raw(out, "</tr>\n");
    }
    wpk_page_end_table(out);
}

void wpk_page_curve(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    wpk_markup(out, "<h2>Search of <bdi>%s</bdi></h2>\n", view->job->ops[view->op].name);
    if (view->curve->outcome_count == 0) {
        wpk_markup_raw(out, "<p>No trial of it has ended.</p>\n");
        return;
    }
    if (view->curve->point_count > 0) {
        put_chart(out, view);
        if (!view->is_report) {
            put_choices(out, view);
        }
        put_best(out, view->curve);
    }
    put_outcomes(out, view);
}

/* ---- genes */

static void put_gene(struct wpk_buf *out, const struct wpk_worth_gene *gene, double best)
{
    for (int i = 0; i < gene->value_count && i < VALUES_SHOWN; i++) {
        const struct wpk_worth_value *value = &gene->values[i];
        wpk_markup(out, "<tr><td>%s</td><td class=\"n\">%.0f %%</td>", gene->name,
                   100 * gene->share);
        wpk_page_cell(out, value->text);
        wpk_page_cell_count(out, value->count);
        wpk_page_cell_ratio(out, value->best / best);
        wpk_page_cell_ratio(out, value->count > 0 ? value->times[value->count / 2] / best : 0);
        wpk_markup_raw(out, "</tr>\n");
    }
}

void wpk_page_worth(struct wpk_buf *out, const struct wpk_page_curve *curve)
{
    const struct wpk_worth *worth = &curve->worth;
    int shown = 0;
    if (worth->count < 2) {
        return;
    }
    wpk_markup_raw(out, "<h2>Genes</h2>\n");
    wpk_page_begin_table(out, "genes",
                         "The share of the scatter of all times that a gene explains; the best and "
                         "the median time with each value, by the best of the search",
                         "Gene|#Explains|Value|#Trials|#Best|#Median");
    for (int i = 0; i < worth->gene_count && shown < GENES_SHOWN; i++) {
        if (worth->genes[i].value_count > 1) { /* else there is nothing to compare */
            put_gene(out, &worth->genes[i], worth->best);
            shown++;
        }
    }
    wpk_page_end_table(out);
    wpk_markup(
        out,
        "<p>From %u trials with a time, in stretches that are evenly spaced among %llu asks.</p>\n",
        worth->count, (unsigned long long)curve->ask_count);
}
