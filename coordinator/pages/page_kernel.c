/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of pages that are about one kernel or two candidates. */
#include "common/format.h"
#include "common/markup.h"
#include "coordinator/pages/pages.h"
#include "target/code.h"

#include <stdio.h>
#include <string.h>

const struct wpk_api_kernel *wpk_page_find_kernel(const struct wpk_api_job *job, const char *name)
{
    int found = WPK_FIND(struct wpk_api_kernel, name, job->kernels, job->kernel_count, name);
    return found >= 0 ? &job->kernels[found] : NULL;
}

void wpk_page_code(struct wpk_buf *out, const char *id, const char *what, const char *schedule)
{
    struct wpk_buf code = {0};
    char name[64], title[128];
    snprintf(title, sizeof title, "Schedule of %.100s", what);
    wpk_page_fold(out, id, title, schedule);
    if (schedule[0] != '\0' && wpk_code_print(WPK_CODE_OWN, schedule, &code, NULL) == WPK_OK) {
        snprintf(name, sizeof name, "%s-code", id);
        snprintf(title, sizeof title, "Code of %.100s", what);
        wpk_page_fold(out, name, title, wpk_buf_text(&code));
    }
    wpk_buf_fini(&code);
}

/* The roofline: the shortest times of the arithmetic, and of the memory traffic. */
static void put_roofline(struct wpk_buf *out, const struct wpk_api_kernel *kernel)
{
    char computing[WPK_FORMAT_SIZE], moving[WPK_FORMAT_SIZE], text[160];
    int threads = kernel->threads > 0 ? kernel->threads : 1;
    double time = (double)kernel->served.time.median_ns;
    double flops = kernel->flops / kernel->peak_flops_per_s / threads * 1e9;
    double bytes = kernel->bytes / kernel->peak_bytes_per_s * 1e9;
    if (time > 0 && kernel->peak_flops_per_s > 0 && kernel->peak_bytes_per_s > 0) {
        wpk_format_ns((uint64_t)flops, computing);
        wpk_format_ns((uint64_t)bytes, moving);
        snprintf(text, sizeof text,
                 "arithmetic takes %s (%.0f %% of the time), memory traffic %s (%.0f %%)",
                 computing, 100 * flops / time, moving, 100 * bytes / time);
        wpk_page_term(out, "At the device's peaks", text);
    }
}

void wpk_page_kernel_terms(struct wpk_buf *out, const struct wpk_api_kernel *kernel, int number)
{
    char id[32], error[96];
    wpk_markup_raw(out, "<dl>\n");
    wpk_page_term(out, "Kernel", kernel->id);
    wpk_page_term(out, "Device", kernel->device);
    wpk_page_term(out, "Environment", kernel->environment);
    wpk_page_term(out, "Provider", WPK_OR_EMPTY(kernel->served.provider));
    wpk_page_term(out, "Candidate", WPK_OR_EMPTY(kernel->served.candidate));
    put_roofline(out, kernel);
    wpk_page_term(out, "Accuracy", kernel->accuracy);
    snprintf(error, sizeof error, "%.3g, tolerance %.3g; rms %.3g of the output's",
             kernel->error_max, kernel->error_tolerance, kernel->of_rms);
    wpk_page_term(out, "Largest error", error);
    wpk_page_term(out, "Conditions", kernel->conditions);
    wpk_page_term(out, "Verified by", WPK_OR_EMPTY(kernel->verified_by));
    wpk_page_term(out, "Asked for by", WPK_OR_EMPTY(kernel->owner));
    wpk_page_term(out, "Its job", WPK_OR_EMPTY(kernel->job));
    wpk_markup_raw(out, "</dl>\n");
    snprintf(id, sizeof id, "schedule%d", number);
    wpk_page_code(out, id, kernel->name[0] != '\0' ? kernel->name : kernel->id, kernel->schedule);
}

/* ---- two candidates */

static void put_gene(struct wpk_buf *out, const char *name, size_t size, const char *left,
                     const char *right)
{
    size_t sizes[2];
    const char *values[2] = {wpk_api_trial_gene(left, name, size, &sizes[0]),
                             wpk_api_trial_gene(right, name, size, &sizes[1])};
    bool same = sizes[0] == sizes[1] && memcmp(values[0], values[1], sizes[0]) == 0;
    char text[WPK_MARKUP_VALUE_MAX + 8];
    snprintf(text, sizeof text, "%.*s", (int)size, name);
    wpk_markup(out, "<tr><td>%s</td>", text);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%.*s", (int)sizes[i], values[i]);
        wpk_markup_raw(out, same ? "<td>" : "<td><strong>");
        wpk_markup(out, "%s", text);
        wpk_markup_raw(out, same ? "</td>" : "</strong></td>");
    }
    wpk_markup_raw(out, "</tr>\n");
}

void wpk_page_gene_pair(struct wpk_buf *out, const char *id, const char *left, const char *right)
{
    wpk_page_begin_table(out, id, "Genes; those that differ stand out", "Gene|One|Other");
    for (int turn = 0; turn < 2; turn++) {
        for (const char *at = turn == 0 ? left : right; *at != '\0'; at += strspn(at, " ")) {
            size_t size = strcspn(at, "= "), unused;
            if (at[size] == '=' &&
                (turn == 0 || wpk_api_trial_gene(left, at, size, &unused)[0] == '\0')) {
                put_gene(out, at, size, left, right);
            }
            at += strcspn(at, " ");
        }
    }
    wpk_page_end_table(out);
}
