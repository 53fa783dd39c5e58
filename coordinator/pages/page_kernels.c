/* SPDX-License-Identifier: Apache-2.0 */
/* Served kernels, and jobs side by side. */
#include "coordinator/pages/pages.h"

#include "common/markup.h"

#include <stdio.h>
#include <string.h>

#define PAIRS_SHOWN 64  /* operators of two jobs: the page stays below 150 KB */
#define SHOWN_IN_FULL 1 /* of these, with genes and code */

/* The origin of a kernel: our generator, a vendor, or the fallback. */
static const char *origin_of(const struct wpk_api_kernel *kernel)
{
    const char *provider = WPK_OR_EMPTY(kernel->served.provider);
    return strcmp(provider, "plain") == 0                     ? "fallback"
           : WPK_OR_EMPTY(kernel->served.artifact)[0] == '\0' ? "vendor"
                                                              : "ours";
}

static void put_kernel(struct wpk_buf *out, const struct wpk_api_kernel *kernel)
{
    char error[48];
    snprintf(error, sizeof error, "%s, %.2g× direct", kernel->accuracy, kernel->times_direct);
    wpk_markup(out, "<tr><td><a href=\"kernel?id=%s\">%s</a></td>", kernel->id, kernel->id);
    wpk_page_cell(out, kernel->op);
    wpk_markup(out, "<td>%s%s</td>", origin_of(kernel), kernel->pinned ? ", pinned" : "");
    wpk_page_cell(out, WPK_OR_EMPTY(kernel->served.provider));
    wpk_page_cell(out, WPK_OR_EMPTY(kernel->served.algorithm));
    wpk_page_cell_time(out, kernel->served.time.median_ns, kernel->served.time.mad_ns);
    wpk_page_cell_time(out, kernel->baseline.time.median_ns, kernel->baseline.time.mad_ns);
    wpk_page_cell_ratio(out, kernel->speedup);
    wpk_page_cell(out, kernel->times_direct < 0 ? kernel->accuracy : error);
    wpk_markup(out, "<td>%s</td>", kernel->conditions);
    wpk_markup(out, "<td class=\"n\">%d</td>", kernel->threads);
    wpk_page_cell(out, kernel->device);
    wpk_page_cell(out, WPK_OR_EMPTY(kernel->owner));
    wpk_markup_raw(out, "</tr>\n");
}

static void put_table(struct wpk_buf *out, const char *caption,
                      const struct wpk_api_kernel *kernels, int count)
{
    wpk_page_begin_table(out, "kernels", caption,
                         "Kernel|Operator|From|Provider|Algorithm|#Time|#Vendor|#Speedup|"
                         "Accuracy|Conditions|#Threads|Device|Asked for by");
    for (int i = 0; i < count; i++) {
        put_kernel(out, &kernels[i]);
    }
    wpk_page_end_table(out);
}

void wpk_page_kernels(struct wpk_buf *out, const struct wpk_api_kernel *kernels, int count,
                      const char *next)
{
    const struct wpk_page page = {.title = "Kernels", .here = "kernels", .is_live = true};
    wpk_page_begin(out, &page);
    wpk_markup_raw(out, "<h1>Kernels</h1>\n");
    if (count == 0) {
        wpk_markup_raw(out, "<p>None is served yet.</p>\n");
    } else {
        put_table(out, "Served, newest first", kernels, count);
    }
    wpk_page_next(out, "kernels?page_token=", next);
    wpk_markup_raw(out, "<h2>Commands</h2>\n");
    wpk_page_command(out, "kernels pin", "KERNEL", "serves one whatever searches find");
    wpk_page_command(out, "kernels revoke", "KERNEL", "takes one back");
    wpk_page_end(out);
}

/* ---- one kernel */

void wpk_page_kernel(struct wpk_buf *out, const struct wpk_api_kernel *kernels, int count,
                     const char *match)
{
    const struct wpk_page page = {.title = kernels[0].id, .here = "kernels"};
    wpk_page_begin(out, &page);
    wpk_markup(out, "<h1>Kernel %s</h1>\n", kernels[0].id);
    wpk_page_fold(out, "operator", "Operator", kernels[0].op);
    wpk_markup(out, "<p>Match of a lookup of this operator on this device: %s.</p>\n", match);
    wpk_page_kernel_terms(out, &kernels[0], 0);
    wpk_markup_raw(out, "<h2>Earlier kernels</h2>\n");
    put_table(out, "This kernel and earlier ones of the same operator and device", kernels, count);
    wpk_markup_raw(out, "<h2>Commands</h2>\n");
    wpk_page_command(out, "get", kernels[0].fingerprint, "-o kernel.so fetches it");
    wpk_page_command(out, "kernels pin", kernels[0].id, "serves it whatever searches find");
    wpk_page_command(out, "kernels revoke", kernels[0].id, "takes it back");
    wpk_page_end(out);
}

/* ---- jobs side by side */

static void put_pair(struct wpk_buf *out, const char *name, const struct wpk_api_op *left,
                     const struct wpk_api_op *right)
{
    static const struct wpk_api_op none;
    left = left != NULL ? left : &none;
    right = right != NULL ? right : &none;
    double a = (double)left->best.time.median_ns, b = (double)right->best.time.median_ns;
    wpk_markup_raw(out, "<tr>");
    wpk_page_cell(out, name);
    wpk_page_cell_time(out, left->best.time.median_ns, left->best.time.mad_ns);
    wpk_page_cell_time(out, right->best.time.median_ns, right->best.time.mad_ns);
    wpk_page_cell_ratio(out, a > 0 && b > 0 ? a / b : 0);
    wpk_page_cell(out, WPK_OR_EMPTY(left->best.candidate));
    wpk_page_cell(out, WPK_OR_EMPTY(right->best.candidate));
    wpk_markup_raw(out, "</tr>\n");
}

static void put_codes(struct wpk_buf *out, const struct wpk_api_job *job, const char *name,
                      const char *which, int number)
{
    const struct wpk_api_kernel *kernel = wpk_page_find_kernel(job, name);
    char id[24], what[128];
    snprintf(id, sizeof id, "%s%d", which, number);
    snprintf(what, sizeof what, "the %s, %.80s", which, name);
    wpk_page_code(out, id, what, kernel != NULL ? WPK_OR_EMPTY(kernel->schedule) : "");
}

void wpk_page_compare(struct wpk_buf *out, const struct wpk_api_job *left,
                      const struct wpk_api_job *right)
{
    const struct wpk_page page = {.title = "Two jobs", .here = "./"};
    wpk_page_begin(out, &page);
    wpk_markup(out, "<h1><bdi>%s</bdi> beside <bdi>%s</bdi></h1>\n", left->name, right->name);
    wpk_page_begin_table(out, "pairs", "Operators by their names",
                         "Operator|#First|#Second|#First over second|Best of the first|Best of the "
                         "second");
    for (int i = 0; i < left->op_count && i < PAIRS_SHOWN; i++) {
        put_pair(out, left->ops[i].name, &left->ops[i], wpk_api_job_op(right, left->ops[i].name));
    }
    for (int i = 0; i < right->op_count && i < PAIRS_SHOWN; i++) {
        if (wpk_api_job_op(left, right->ops[i].name) == NULL) {
            put_pair(out, right->ops[i].name, NULL, &right->ops[i]);
        }
    }
    wpk_page_end_table(out);
    if (left->op_count > PAIRS_SHOWN || right->op_count > PAIRS_SHOWN) {
        wpk_markup_raw(out, "<p>Operators beyond the first 64 of a job are left out.</p>\n");
    }
    for (int i = 0; i < left->op_count && i < SHOWN_IN_FULL; i++) {
        const char *name = left->ops[i].name;
        const struct wpk_api_op *other = wpk_api_job_op(right, name);
        char id[24];
        snprintf(id, sizeof id, "genes%d", i);
        wpk_markup(out, "<h2><bdi>%s</bdi></h2>\n", name);
        wpk_page_gene_pair(out, id, WPK_OR_EMPTY(left->ops[i].best.candidate),
                           other != NULL ? WPK_OR_EMPTY(other->best.candidate) : "");
        put_codes(out, left, name, "first", i);
        put_codes(out, right, name, "second", i);
    }
    wpk_page_end(out);
}
