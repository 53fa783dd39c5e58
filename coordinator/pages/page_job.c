/* SPDX-License-Identifier: Apache-2.0 */
/* A job with its operators; the one that is asked for in full. */
#include "coordinator/pages/pages.h"

#include "common/format.h"
#include "common/markup.h"

#include <stdio.h>

#define OPS_SHOWN_MAX 128     /* rows: a page stays below 150 KB */
#define KERNELS_SHOWN_MAX 128 /* of a report, with their code */

/* Percent of the device's peak that a kernel reaches; 0: unknown. */
static double peak_share(const struct wpk_api_kernel *kernel)
{
    if (kernel == NULL || kernel->served.time.median_ns == 0 || kernel->peak_flops_per_s <= 0) {
        return 0;
    }
    int threads = kernel->threads > 0 ? kernel->threads : 1;
    double flops_per_s = kernel->flops * 1e9 / (double)kernel->served.time.median_ns;
    return 100 * flops_per_s / (kernel->peak_flops_per_s * threads);
}

static void put_op(struct wpk_buf *out, const struct wpk_page_job_view *view, int index)
{
    const struct wpk_api_job *job = view->job;
    const struct wpk_api_op *op = &job->ops[index];
    double share = peak_share(wpk_page_find_kernel(job, op->name));
    double best = (double)op->best.time.median_ns;
    wpk_markup_raw(out, "<tr><td class=\"text\">");
    if (view->is_report || index == view->op) {
        wpk_markup(out, "<bdi>%s</bdi></td>", op->name);
    } else {
        wpk_markup_raw(out, "<a href=\"job?id=");
        wpk_markup_url(out, job->id);
        wpk_markup_raw(out, "&amp;op=");
        wpk_markup_url(out, op->name);
        wpk_markup(out, "\"><bdi>%s</bdi></a></td>", op->name);
    }
    wpk_markup(out, "<td>%s%s</td>", op->phase, op->from_history ? ", from history" : "");
    wpk_markup(out, "<td class=\"n\" data-v=\"%lld\">%lld of %lld</td>",
               (long long)(op->measured + op->failed), (long long)(op->measured + op->failed),
               (long long)op->wanted);
    wpk_page_cell_count(out, op->failed);
    wpk_page_cell_time(out, op->best.time.median_ns, op->best.time.mad_ns);
    wpk_page_cell(out, op->best.algorithm != NULL ? op->best.algorithm : "");
    wpk_page_cell_time(out, op->baseline.time.median_ns, op->baseline.time.mad_ns);
    wpk_page_cell_ratio(out, best > 0 ? (double)op->baseline.time.median_ns / best : 0);
    if (share > 0) {
        wpk_markup(out, "<td class=\"n\">%.0f %%</td>", share);
    } else {
        wpk_markup_raw(out, "<td class=\"n\">-</td>");
    }
    wpk_page_cell(out, op->reason);
    wpk_markup_raw(out, "</tr>\n");
}

static void put_ops(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    const struct wpk_api_job *job = view->job;
    int shown = job->op_count < OPS_SHOWN_MAX ? job->op_count : OPS_SHOWN_MAX;
    wpk_page_begin_table(out, "ops", "Operators",
                         "Operator|Phase|#Trials|#Failed|#Best time|Algorithm|#Vendor|#Speedup|#Of "
                         "peak|Reason");
    for (int i = 0; i < shown; i++) {
        put_op(out, view, i);
    }
    wpk_page_end_table(out);
    if (shown < job->op_count) {
        wpk_markup(out, "<p>And %d more: <code>wpkctl status %s</code> lists all.</p>\n",
                   job->op_count - shown, job->id);
    }
}

static void put_head(struct wpk_buf *out, const struct wpk_api_job *job)
{
    char seconds[WPK_FORMAT_SIZE], left[WPK_FORMAT_SIZE] = "", speedup[WPK_FORMAT_SIZE] = "";
    double ratio = wpk_page_speedup(job);
    bool ended = wpk_api_job_ended(job);
    wpk_format_seconds((int64_t)job->seconds, seconds);
    if (!ended) {
        wpk_format_seconds(job->seconds_left, left);
    }
    if (ratio > 0) {
        snprintf(speedup, sizeof speedup, "%.2f× the vendors'", ratio);
    }
    wpk_markup(out, "<h1><bdi>%s</bdi></h1>\n<dl>\n", job->name[0] != '\0' ? job->name : job->id);
    wpk_page_term(out, "Job", job->id);
    wpk_page_term(out, "State", job->state);
    wpk_page_term(out, "Reason", job->reason);
    wpk_page_term(out, "Speed", speedup);
    wpk_page_term(out, "Owner", job->owner);
    wpk_page_term(out, "Submitted", job->created);
    wpk_page_term(out, "Running for", seconds);
    wpk_page_term(out, "Time left, at most", left);
    wpk_markup_raw(out, "</dl>\n");
}

static void put_kernels(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    const struct wpk_api_job *job = view->job;
    if (view->is_report) {
        for (int i = 0; i < job->kernel_count && i < KERNELS_SHOWN_MAX; i++) {
            wpk_markup(out, "<h2>Kernel of <bdi>%s</bdi></h2>\n", job->kernels[i].name);
            wpk_page_kernel_terms(out, &job->kernels[i], i);
        }
        if (job->kernel_count > KERNELS_SHOWN_MAX) {
            wpk_markup_raw(out, "<p>Kernels beyond the first 128 are left out.</p>\n");
        }
        return;
    }
    const struct wpk_api_kernel *kernel =
        view->op < job->op_count ? wpk_page_find_kernel(job, job->ops[view->op].name) : NULL;
    if (kernel != NULL) {
        wpk_markup_raw(out, "<h2>Result</h2>\n");
        wpk_page_kernel_terms(out, kernel, 0);
    }
}

static void put_commands(struct wpk_buf *out, const struct wpk_api_job *job)
{
    wpk_markup_raw(out, "<h2>Commands</h2>\n");
    wpk_page_command(out, "why", job->id, "says more of its best candidate");
    wpk_page_command(out, "trials", job->id, "lists all trials");
    wpk_page_command(out, "report", job->id, "-o report.html writes this page into a file");
    if (!wpk_api_job_ended(job)) {
        wpk_page_command(out, "jobs pause", job->id, "holds the job");
        wpk_page_command(out, "cancel", job->id, "stops the job; results stay");
    }
    wpk_markup(out,
               "<form action=\"compare\"><input type=\"hidden\" name=\"a\" value=\"%s\">"
               "<label>Beside job <input name=\"b\" size=\"20\" required></label> "
               "<button>Compare</button></form>\n",
               job->id);
}

void wpk_page_job(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    const struct wpk_api_job *job = view->job;
    const struct wpk_page page = {.title = job->name[0] != '\0' ? job->name : job->id,
                                  .here = "./",
                                  .is_live = !wpk_api_job_ended(job),
                                  .is_file = view->is_report};
    wpk_page_begin(out, &page);
    put_head(out, job);
    put_ops(out, view);
    if (view->op < job->op_count) {
        wpk_page_curve(out, view);
        wpk_page_worth(out, view->curve);
    }
    put_kernels(out, view);
    if (view->op < job->op_count && view->trials != NULL) {
        wpk_page_trials(out, view);
    }
    if (!view->is_report) {
        put_commands(out, job);
    }
    wpk_page_end(out);
}
