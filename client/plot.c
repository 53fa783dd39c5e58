/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl plot: how a search converged, as an SVG: each trial's time by the number of its ask, the
 * best so far, the vendor's time, and how trials ended, on a light ground and on a dark one. */
#include "client/command.h"
#include "client/trial_list.h"
#include "common/chart.h"
#include "common/fs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct plot {
    const struct wpk_trial_list *list;
    bool by_source; /* marks tell sources of candidates apart; else algorithms */
    char outcome[WPK_CHART_NOTES_MAX][32];
    int outcome_count[WPK_CHART_NOTES_MAX];
    struct wpk_chart chart;
};

static void count_outcome(struct plot *plot, const struct wpk_api_trial *trial)
{
    const char *name = trial->censored ? "raced out" : trial->outcome;
    int at = 0;
    while (at < plot->chart.note_count && strcmp(plot->outcome[at], name) != 0) {
        at++;
    }
    if (at == plot->chart.note_count && at < WPK_CHART_NOTES_MAX) {
        snprintf(plot->outcome[plot->chart.note_count++], sizeof(plot->outcome[0]), "%s", name);
    }
    plot->outcome_count[at < WPK_CHART_NOTES_MAX ? at : WPK_CHART_NOTES_MAX - 1]++;
}

/* Fill the chart, with points of `points`, which has room for all trials. */
static void survey(struct plot *plot, struct wpk_chart_point *points)
{
    struct wpk_chart *chart = &plot->chart;
    for (int i = 0; i < plot->list->count; i++) {
        const struct wpk_api_trial *one = &plot->list->trial[i];
        double us = one->median_ns / 1e3;
        bool timed = wpk_trial_is_timed(one);
        if (one->index < 0) {
            bool faster = chart->vendor_us == 0 || us < chart->vendor_us;
            chart->vendor_us =
                timed && strcmp(one->provider, "plain") != 0 && faster ? us : chart->vendor_us;
            continue;
        }
        chart->x_most = fmax(chart->x_most, (double)one->index + 1);
        count_outcome(plot, one);
        size_t size = strlen(one->source);
        const char *name = plot->by_source
                               ? one->source
                               : wpk_api_trial_gene(one->candidate, "algorithm", 9, &size);
        int series = wpk_chart_series(chart, name, size);
        if (timed) {
            points[chart->count++] =
                (struct wpk_chart_point){(double)one->index + 0.5, us, series, NULL};
        }
    }
    for (int i = 0; i < chart->note_count; i++) {
        char name[sizeof(plot->outcome[0])]; /* apart from the chart, as gcc wants */
        memcpy(name, plot->outcome[i], sizeof(name));
        snprintf(chart->notes[i], sizeof(chart->notes[i]), "%d %s", plot->outcome_count[i], name);
    }
}

static wpk_err draw(const struct wpk_trial_list *list, bool by_source, struct wpk_arena *arena,
                    const char *path, struct wpk_diag *diag)
{
    char title[256];
    struct plot plot = {.list = list, .by_source = by_source};
    struct wpk_buf out = {0};
    if (wpk_trial_list_best(list) < 0) {
        return wpk_fail(diag, WPK_ENOENT,
                        "job %s timed no candidate of %s; wpkctl trials %s --failed says why",
                        list->job, list->op, list->job);
    }
    struct wpk_chart_point *points =
        WPK_DEMAND(WPK_ARENA_NEW(arena, struct wpk_chart_point, (size_t)list->count));
    snprintf(title, sizeof(title), "%s of job %s", list->op, list->job);
    plot.chart = (struct wpk_chart){.title = title,
                                    .x_name = "candidates asked for",
                                    .points = points,
                                    .notes_title = "outcomes",
                                    .is_file = true};
    survey(&plot, points);
    wpk_chart_draw(&plot.chart, &out);
    wpk_err err = wpk_buf_status(&out);
    err = err == WPK_OK ? wpk_fs_write(path, out.data, out.size, 0666, diag) : err;
    wpk_buf_fini(&out);
    return err;
}

enum wpk_exit wpk_command_plot(struct wpk_invocation *call)
{
    struct wpk_session_options given = {.need = WPK_SESSION_HISTORY};
    const char *op = NULL, *path = NULL, *by = "algorithm";
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(given),
        WPK_ARGS_TEXT("op", "NAME", "an operator of a job that has several", &op),
        WPK_ARGS_TEXT("by", "algorithm|source", "what marks tell apart", &by),
        WPK_ARGS_OUTPUT("where the SVG goes", &path),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};
    struct wpk_arena arena = {0};
    struct wpk_trial_list list = {0};

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    wpk_err err =
        path == NULL ? wpk_fail(&call->diag, WPK_EINVAL, "-o says where the SVG goes") : WPK_OK;
    bool by_source = strcmp(by, "source") == 0;
    if (err == WPK_OK && !by_source && strcmp(by, "algorithm") != 0) {
        err = wpk_fail(&call->diag, WPK_EINVAL, "--by is algorithm or source, not %.64s", by);
    }
    err = err == WPK_OK ? wpk_session_open(call->context, &given, &session, &call->diag) : err;
    if (err == WPK_OK) {
        err =
            wpk_trial_list_fetch(&session, call->args.operands[0], op, &arena, &list, &call->diag);
    }
    err = err == WPK_OK ? draw(&list, by_source, &arena, path, &call->diag) : err;
    wpk_arena_fini(&arena);
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}
