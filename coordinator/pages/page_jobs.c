/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/pages/pages.h"

#include "common/format.h"
#include "common/json.h"
#include "common/markup.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX 4096 /* bytes of a name */

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
        wpk_page_cell_time(out, job->ops[0].best.time.median_ns, job->ops[0].best.time.mad_ns);
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
    wpk_page_end(out);
}

/* ---- a job that is gone */

void wpk_page_gone_job(struct wpk_buf *out, const struct wpk_buf *problem)
{
    static const struct wpk_page page = {.title = "A job that was pruned", .here = "./"};
    struct wpk_json_reader *r = NULL;
    char best[WPK_FORMAT_SIZE];
    wpk_page_begin(out, &page);
    wpk_markup_raw(out, "<h1>A job that was pruned</h1>\n<p class=\"note\" role=\"alert\">This is "
                        "all that is left of it.</p>\n<dl>\n");
    if (wpk_json_open(wpk_buf_text(problem), problem->size, 0, &r, NULL) == WPK_OK) {
        wpk_json_enter(r, "gone");
        while (wpk_json_next(r)) {
            if (wpk_json_kind_of(r, NULL) == WPK_JSON_STRING) {
                wpk_page_term(out, wpk_json_name(r), wpk_json_get_text(r, NULL, TEXT_MAX));
            }
        }
        wpk_json_leave(r);
        wpk_json_enter(r, "gone");
        wpk_markup(out, "<dt>operators</dt><dd>%lld</dd>\n",
                   (long long)wpk_json_get_int(r, "op_count", 0, INT32_MAX));
        wpk_json_enter_array(r, "ops");
        while (wpk_json_next(r)) {
            wpk_format_ns((uint64_t)wpk_json_get_int(r, "best_ns", 0, WPK_JSON_INT_MAX), best);
            wpk_page_term(out, wpk_json_get_text(r, "name", TEXT_MAX), best);
        }
    }
    wpk_markup_raw(out, "</dl>\n");
    wpk_json_close(r);
    wpk_page_end(out);
}
