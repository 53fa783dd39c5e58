/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/tune.h"

#include "common/format.h"

#include <math.h>
#include <stdlib.h>

static const char *const names[WPK_TUNE_FROM_COUNT] = {WPK_TUNE_FROM_LIST(WPK_LIST_TEXT)};

/* ---- from rooflines */

static double roofline_ns(const struct wpk_tune_kernel *kernel, enum wpk_conditions conditions,
                          const struct wpk_tune_machine *machine)
{
    double bytes = wpk_cost_memory_bytes(&kernel->cost, conditions, (double)machine->cache_bytes);

    return wpk_cost_roofline_ns(&kernel->cost, bytes, &machine->roofline);
}

/* The median share of the cold roofline of the kernels that history knows; 1: of none. Moving data
 * in the caches takes time, too, so all bytes count. */
static double median_share(const struct wpk_tune_model *model,
                           const struct wpk_tune_machine *machine)
{
    double *shares = WPK_DEMAND(calloc((size_t)model->kernel_count + 1, sizeof(*shares)));
    double median = 1;
    int count = 0;

    for (int k = 0; k < model->kernel_count; k++) {
        const struct wpk_tune_kernel *kernel = &model->kernels[k];
        double roof = roofline_ns(kernel, WPK_CONDITIONS_COLD, machine);
        if (kernel->expected.ns > 0 && roof > 0) {
            shares[count++] = roof / kernel->expected.ns;
        }
    }
    if (count > 0) {
        qsort(shares, (size_t)count, sizeof(*shares), wpk_real_compare);
        median = shares[count / 2];
    }
    free(shares);
    return median;
}

wpk_err wpk_estimate_model(const struct wpk_tune_source *source, const struct wpk_job *job,
                           const struct wpk_tune_machine *machine, struct wpk_tune_model *model,
                           struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    WPK_ASSERT(job->op_count == model->kernel_count);
    for (int k = 0; k < model->kernel_count; k++) {
        struct wpk_tune_kernel *kernel = &model->kernels[k];
        kernel->roofline_ns = roofline_ns(kernel, job->ops[k].conditions, machine);
        kernel->expected = (struct wpk_tune_expected){.from = WPK_TUNE_FROM_ROOFLINE};
    }
    if (source != NULL && source->expect != NULL) {
        struct wpk_tune_expected *known =
            WPK_DEMAND(calloc((size_t)model->kernel_count + 1, sizeof(*known)));
        err = source->expect(source->user, job, known, diag);
        for (int k = 0; err == WPK_OK && k < model->kernel_count; k++) {
            if (known[k].ns > 0) {
                model->kernels[k].expected = known[k];
            }
        }
        free(known);
    }
    double share = median_share(model, machine);
    for (int k = 0; k < model->kernel_count; k++) {
        struct wpk_tune_kernel *kernel = &model->kernels[k];
        if (kernel->expected.from == WPK_TUNE_FROM_ROOFLINE) {
            double ns = roofline_ns(kernel, WPK_CONDITIONS_COLD, machine) / share;
            kernel->expected.ns = fmax(ns, kernel->roofline_ns);
        }
    }
    return err;
}

/* ---- sums */

void wpk_estimate_sum(const struct wpk_tune_model *model, int shape, struct wpk_estimate_sum *out)
{
    const struct wpk_assemble_shape *s = &model->shapes[shape];

    *out = (struct wpk_estimate_sum){.ns = 0};
    for (int r = 0; r < s->regions.count; r++) {
        const struct wpk_tune_kernel *kernel = &model->kernels[s->kernel[r]];
        int64_t calls = s->regions.list[r].count;
        out->ns += (double)calls * kernel->expected.ns;
        out->roofline_ns += (double)calls * kernel->roofline_ns;
        out->calls[kernel->expected.from] += calls;
    }
}

void wpk_estimate_print_steps(const struct wpk_estimate_sum *sum, struct wpk_buf *out)
{
    bool is_first = true;

    for (int i = 0; i < WPK_TUNE_FROM_COUNT; i++) {
        if (sum->calls[i] > 0) {
            wpk_buf_printf(out, "%s%s %lld", is_first ? "" : ", ", names[i],
                           (long long)sum->calls[i]);
            is_first = false;
        }
    }
}
