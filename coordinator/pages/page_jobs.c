/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/pages/pages.h"

#include "common/format.h"
#include "common/markup.h"

#include <math.h>
#include <string.h>

double wpk_page_speedup(const struct wpk_api_job *job)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < job->op_count; i++) {
        const struct wpk_api_op *op = &job->ops[i];
        if (op->best.time.median_ns > 0 && op->baseline.time.median_ns > 0) {
            sum += log((double)op->baseline.time.median_ns / (double)op->best.time.median_ns);
            count++;
        }
    }
    return count > 0 ? exp(sum / count) : 0;
}

static void put_progress(struct wpk_buf *out, const struct wpk_api_job *job)
{
    int64_t ended = 0, wanted = 0;
    for (int i = 0; i < job->op_count; i++) {
        ended += job->ops[i].measured + job->ops[i].failed;
        wanted += job->ops[i].wanted;
    }
    wpk_markup(out,
               "<td data-v=\"%.4f\"><progress max=\"%lld\" value=\"%lld\" aria-label=\"trials of "
               "%s\"></progress> <span class=\"faint\">%lld of %lld</span></td>",
               wanted > 0 ? (double)ended / (double)wanted : 0,
               (long long)(wanted > 0 ? wanted : 1),
               (long long)(wanted > 0 && ended > wanted ? wanted : ended), job->id,
               (long long)ended, (long long)wanted);
}

static void put_job(struct wpk_buf *out, const struct wpk_api_job *job)
{
    char left[WPK_FORMAT_SIZE] = "-";
    if (!wpk_api_job_ended(job)) {
        wpk_format_seconds(job->seconds_left, left);
    }
    wpk_markup_raw(out, "<tr><td class=\"text\"><a href=\"job?id=");
    wpk_markup_url(out, job->id);
    bool failed = strcmp(job->state, "failed") == 0, done = strcmp(job->state, "done") == 0;
    wpk_markup(out, "\"><bdi>%s</bdi></a></td><td class=\"%s\">%s</td>",
               job->name[0] != '\0' ? job->name : job->id,
               failed ? "bad"
               : done ? "good"
                      : "",
               job->state);
    put_progress(out, job);
    if (job->op_count == 1) {
        wpk_page_cell_time(out, &job->ops[0].best.time);
    } else {
        wpk_markup(out, "<td class=\"n\">%d operators</td>", job->op_count);
    }
    wpk_page_cell_ratio(out, wpk_page_speedup(job));
    wpk_markup(out, "<td class=\"n\" data-v=\"%lld\">%s</td>", (long long)job->seconds_left, left);
    wpk_page_cell(out, job->owner);
    wpk_markup(out, "<td class=\"n\">%s</td></tr>\n", job->created);
}

void wpk_page_jobs(struct wpk_buf *out, const struct wpk_api_job *jobs, int count,
                   const char *state, const char *next)
{
    static const char *const states[] = {"", "queued", "running", "paused", "done", "failed"};
    const struct wpk_page page = {.title = "Jobs", .here = "./", .is_live = true};
    struct wpk_buf path = {0};
    wpk_page_begin(out, &page);
    wpk_markup_raw(out, "<h1>Jobs</h1>\n<p>");
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        bool here = strcmp(states[i], state) == 0;
        const char *name = states[i][0] != '\0' ? states[i] : "all";
        if (here) {
            wpk_markup(out, "<strong>%s</strong> ", name);
        } else {
            wpk_markup(out, "<a href=\"./%s%s\">%s</a> ", i > 0 ? "?state=" : "", states[i], name);
        }
    }
    wpk_markup_raw(out, "</p>\n");
    if (count == 0) {
        wpk_markup_raw(out,
                       "<p>There are none. <code>wpkctl submit FILE</code> submits one.</p>\n");
    } else {
        wpk_page_begin_table(out, "jobs", "Newest first",
                             "Job|State|Trials|#Best time|#Speedup|#Time left|Owner|#Submitted");
        for (int i = 0; i < count; i++) {
            put_job(out, &jobs[i]);
        }
        wpk_page_end_table(out);
    }
    wpk_markup(&path, "./?state=%s&amp;page_token=", state);
    wpk_page_next(out, wpk_buf_text(&path), next);
    wpk_buf_fini(&path);
    wpk_page_end(out, &page);
}
