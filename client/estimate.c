/* SPDX-License-Identifier: Apache-2.0 */
#include "client/estimate.h"

#include "common/caches.h"
#include "common/json.h"
#include "schema/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_CACHE 3 /* its level */
#define NS_MAX 9e15

static const char *const names[WPK_TUNE_FROM_COUNT] = {WPK_TUNE_FROM_LIST(WPK_LIST_TEXT)};

/* ---- from history */

static wpk_err print_request(const struct wpk_job *job, const char *device, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_begin_array(w, "lookups");
    for (int i = 0; i < job->op_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_job_op_put(&job->ops[i], w);
        wpk_json_put_int(w, "threads", job->threads);
        if (device[0] != '\0') {
            wpk_json_put_text(w, "device", device);
        }
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_err err = wpk_json_print(w, false, out);
    wpk_json_writer_free(w);
    return err;
}

/* A source that this program does not know is none. */
static void read_match(struct wpk_json_reader *r, struct wpk_tune_kernel *out)
{
    if (wpk_json_kind_of(r, "expected_ns") != WPK_JSON_OBJECT ||
        wpk_json_kind_of(r, "expected_from") != WPK_JSON_STRING) {
        return;
    }
    const char *from = wpk_json_get_text(r, "expected_from", 64);
    for (int i = 0; i < WPK_TUNE_FROM_ROOFLINE; i++) {
        if (strcmp(names[i], from) == 0) {
            out->expected_from = (enum wpk_tune_from)i;
            wpk_json_enter(r, "expected_ns");
            out->expected_ns = wpk_json_get_real(r, "median", 0, NS_MAX);
            wpk_json_leave(r);
        }
    }
}

static wpk_err ask(struct wpk_session *session, const struct wpk_job *job,
                   struct wpk_tune_model *model, struct wpk_diag *diag)
{
    char class[WPK_JOB_DEVICE_MAX];
    struct wpk_device device;
    struct wpk_buf body = {0};
    struct wpk_http_reply reply = {0};
    struct wpk_json_reader *r = NULL;

    snprintf(class, sizeof(class), "%s", job->device);
    if (session->private_service != NULL &&
        wpk_device_probe(WPK_CPU_FLAGS_ALL, &device) == WPK_OK) {
        wpk_device_class(&device, class, sizeof(class));
    }
    wpk_err err = print_request(job, class, &body);
    if (err == WPK_OK) {
        err = wpk_session_ask(session, "/v1/kernels:lookup", wpk_buf_text(&body), &reply, diag);
    }
    if (err == WPK_OK) {
        err =
            wpk_json_open(wpk_buf_text(&reply.body), reply.body.size, WPK_HTTP_REPLY_MAX, &r, diag);
    }
    if (err == WPK_OK) {
        wpk_json_enter_array(r, "matches");
        for (int k = 0; k < model->kernel_count && wpk_json_next(r); k++) {
            read_match(r, &model->kernels[k]);
        }
        wpk_json_leave(r);
        err = wpk_json_status(r);
    }
    wpk_json_close(r);
    wpk_http_reply_fini(&reply);
    wpk_buf_fini(&body);
    return err;
}

/* ---- from rooflines */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double roofline_ns(const struct wpk_tune_kernel *kernel, enum wpk_conditions conditions,
                          const struct wpk_roofline *roofline)
{
    double cache = (double)wpk_caches_size(0, LAST_CACHE);
    double bytes = wpk_cost_memory_bytes(&kernel->cost, conditions, cache);

    return wpk_cost_roofline_ns(&kernel->cost, bytes, roofline);
}

/* The median share of the cold roofline of the kernels that history knows; 1: of none. Moving data
 * in the caches takes time, too, so all bytes count. */
static double median_share(const struct wpk_tune_model *model, const struct wpk_roofline *roofline)
{
    double *shares = calloc((size_t)model->kernel_count + 1, sizeof(*shares));
    double median = 1;
    int count = 0;

    for (int k = 0; k < model->kernel_count && shares != NULL; k++) {
        const struct wpk_tune_kernel *kernel = &model->kernels[k];
        double roof = roofline_ns(kernel, WPK_CONDITIONS_COLD, roofline);
        if (kernel->expected_ns > 0 && roof > 0) {
            shares[count++] = roof / kernel->expected_ns;
        }
    }
    if (count > 0) {
        qsort(shares, (size_t)count, sizeof(*shares), compare);
        median = shares[count / 2];
    }
    free(shares);
    return median;
}

wpk_err wpk_estimate_model(struct wpk_session *session, const struct wpk_job *job,
                           const struct wpk_roofline *roofline, struct wpk_tune_model *model,
                           struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    WPK_ASSERT(job->op_count == model->kernel_count);
    for (int k = 0; k < model->kernel_count; k++) {
        struct wpk_tune_kernel *kernel = &model->kernels[k];
        kernel->roofline_ns = roofline_ns(kernel, job->ops[k].conditions, roofline);
        kernel->expected_ns = 0;
        kernel->expected_from = WPK_TUNE_FROM_ROOFLINE;
    }
    if (session != NULL) {
        err = ask(session, job, model, diag);
    }
    double share = median_share(model, roofline);
    for (int k = 0; k < model->kernel_count; k++) {
        struct wpk_tune_kernel *kernel = &model->kernels[k];
        if (kernel->expected_from == WPK_TUNE_FROM_ROOFLINE) {
            double ns = roofline_ns(kernel, WPK_CONDITIONS_COLD, roofline) / share;
            kernel->expected_ns = fmax(ns, kernel->roofline_ns);
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
        out->ns += (double)calls * kernel->expected_ns;
        out->roofline_ns += (double)calls * kernel->roofline_ns;
        out->calls[kernel->expected_from] += calls;
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
