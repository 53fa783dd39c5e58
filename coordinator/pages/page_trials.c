/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of a search: a list of them, and two side by side. */
#include "coordinator/pages/pages.h"

#include "common/markup.h"
#include "target/code.h"

#include <stdio.h>
#include <string.h>

static void put_trial(struct wpk_buf *out, const struct wpk_api_trial *trial)
{
    char line[WPK_MARKUP_VALUE_MAX + 8];
    wpk_markup_raw(out, "<tr>");
    if (trial->index < 0) {
        wpk_markup_raw(out, "<td class=\"n\">-</td>");
    } else {
        wpk_page_cell_count(out, trial->index);
    }
    wpk_markup(out, "<td>%s</td>", trial->provider);
    wpk_markup(out, "<td>%s</td>", trial->censored ? "raced out" : trial->outcome);
    wpk_page_cell_time(out, (uint64_t)trial->median_ns, (uint64_t)trial->mad_ns);
    wpk_page_cell(out, trial->candidate);
    wpk_markup(out, "<td>%s</td>", trial->source);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(trial->log, "\n"), trial->log);
    if (trial->spilled_bytes > 0 && line[0] == '\0') {
        snprintf(line, sizeof line, "%lld bytes of registers spilled",
                 (long long)trial->spilled_bytes);
    }
    wpk_page_cell(out, line);
    wpk_markup_raw(out, "</tr>\n");
}

void wpk_page_trials(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    struct wpk_buf path = {0};
    wpk_markup_raw(out, "<h2>Trials</h2>\n");
    if (view->outcome[0] != '\0') {
        wpk_markup(out, "<p>Those that ended with %s; <a href=\"", view->outcome);
        wpk_page_op_link(out, view);
        wpk_markup_raw(out, "#trials\">all</a>.</p>\n");
    }
    wpk_page_begin_table(out, "trials", "In the order in which they were asked for",
                         "#Ask|Provider|Outcome|#Time|Candidate|Source|Log");
    for (int i = 0; i < view->trial_count; i++) {
        put_trial(out, &view->trials[i]);
    }
    wpk_page_end_table(out);
    wpk_page_op_link(&path, view);
    if (view->outcome[0] != '\0') {
        wpk_markup_raw(&path, "&amp;outcome=");
        wpk_markup_url(&path, view->outcome);
    }
    wpk_markup_raw(&path, "&amp;page_token=");
    wpk_page_next(out, wpk_buf_text(&path), view->is_report ? "" : view->next);
    wpk_buf_fini(&path);
    if (!view->is_report) {
        wpk_markup(out,
                   "<form action=\"trials\"><input type=\"hidden\" name=\"id\" value=\"%s\">"
                   "<input type=\"hidden\" name=\"op\" value=\"%s\">"
                   "<label>Ask <input name=\"a\" size=\"6\" required></label> "
                   "<label>beside <input name=\"b\" size=\"6\" required></label> "
                   "<button>Compare</button></form>\n",
                   view->job->id, view->job->ops[view->op].name);
    }
}

/* ---- two trials */

/* The code of candidates, where the space of this version has them. */
static void put_codes(struct wpk_buf *out, const struct wpk_api_kernel *kernel,
                      const struct wpk_api_trial *const trials[2])
{
    struct wpk_space space = {0};
    if (wpk_space_derive_text(kernel->op, kernel->device, kernel->layouts, kernel->threads, &space,
                              NULL) != WPK_OK) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct wpk_buf schedule = {0};
        char what[32];
        snprintf(what, sizeof what, "ask %lld", (long long)trials[i]->index);
        if (wpk_code_schedule(&space, trials[i]->candidate, &schedule, NULL) == WPK_OK) {
            wpk_page_code(out, i == 0 ? "one" : "other", what, wpk_buf_text(&schedule));
        }
        wpk_buf_fini(&schedule);
    }
    wpk_space_fini(&space);
}

void wpk_page_trial_pair(struct wpk_buf *out, const char *job, const char *op,
                         const struct wpk_api_kernel *kernel, const struct wpk_api_trial *left,
                         const struct wpk_api_trial *right)
{
    const struct wpk_page page = {.title = op, .here = "./"};
    wpk_page_begin(out, &page);
    wpk_markup(out, "<h1>Two trials of <bdi>%s</bdi></h1>\n<p><a href=\"job?id=", op);
    wpk_markup_url(out, job);
    wpk_markup_raw(out, "&amp;op=");
    wpk_markup_url(out, op);
    wpk_markup_raw(out, "\">All trials</a></p>\n");
    wpk_page_begin_table(out, "trials", "Outcomes",
                         "#Ask|Provider|Outcome|#Time|Candidate|Source|Log");
    put_trial(out, left);
    put_trial(out, right);
    wpk_page_end_table(out);
    wpk_page_gene_pair(out, "genes", left->candidate, right->candidate);
    if (kernel != NULL) {
        put_codes(out, kernel, (const struct wpk_api_trial *const[]){left, right});
    }
    wpk_page_end(out);
}
