/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api_call.h"
#include "coordinator/document.h"
#include "coordinator/submission.h"
#include "schema/job.h"

#include <stdio.h>
#include <string.h>

static void list_kernel(void *user, uint64_t id, const char *document)
{
    wpk_document_kernel_served(user, NULL, id, "", true, document);
}

void wpk_api_list_kernels(struct wpk_call *call)
{
    int page_size;
    uint64_t before;
    if (!wpk_call_page_size(call, &page_size) ||
        !wpk_call_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    const char *fingerprint = wpk_http_query(call->request, "fingerprint");
    const char *device = wpk_http_query(call->request, "device");
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "kernels");
    uint64_t last =
        wpk_history_list_kernels(call->api->store, before, fingerprint != NULL ? fingerprint : "",
                                 device != NULL ? device : "", page_size, list_kernel, w);
    wpk_json_end(w);
    wpk_call_put_token(w, last);
    wpk_call_json(call, w);
}

struct lookup {
    char fingerprint[WPK_ID_MAX];
    char layouts[16];
    int threads;
    struct wpk_buf device;
};

/* Look an operator up as a job of one operator would name it. */
static wpk_err expand_lookup(struct wpk_json_reader *r, struct lookup *out, struct wpk_diag *diag)
{
    static const char *const members[] = {"op", "tensors", "constants"};
    struct wpk_buf text = {0};
    wpk_buf_append_text(&text, "{\"name\":\"lookup\",\"ops\":[{\"name\":\"op\"");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (wpk_json_has(r, members[i])) {
            wpk_buf_printf(&text, ",\"%s\":", members[i]);
            wpk_json_get_raw(r, members[i], &text);
        }
    }
    wpk_buf_append_text(&text, "}]}");
    struct wpk_job_entry *job = NULL;
    wpk_err err = wpk_buf_status(&text);
    if (err == WPK_OK) {
        err = wpk_submission_decode(text.data, text.size, &job, diag);
    }
    if (err == WPK_OK) {
        memcpy(out->fingerprint, job->ops[0].fingerprint, sizeof out->fingerprint);
    } else if (strncmp(diag->field, "ops[0].", 7) == 0) {
        /* The place in a text of our own making means nothing to the caller; the field does. */
        memmove(diag->field, diag->field + 7, sizeof diag->field - 7);
        diag->line = 0;
        diag->column = 0;
    }
    wpk_job_entry_free(job);
    wpk_buf_fini(&text);
    return err;
}

static wpk_err decode_lookup(struct wpk_json_reader *r, struct lookup *out, struct wpk_diag *diag)
{
    static const char *const names[] = {"op",      "tensors", "constants", "fingerprint",
                                        "layouts", "threads", "device",    NULL};
    static const char *const layouts[] = {"fixed", "any"};
    wpk_json_allow(r, names);
    size_t choice = wpk_json_has(r, "layouts") ? wpk_json_get_choice(r, "layouts", layouts, 2) : 0;
    snprintf(out->layouts, sizeof out->layouts, "%s", layouts[choice]);
    out->threads = wpk_json_has(r, "threads")
                       ? (int)wpk_json_get_int(r, "threads", 1, WPK_JOB_THREADS_MAX)
                       : 1;
    if (wpk_json_has(r, "device")) {
        wpk_buf_append_text(&out->device, wpk_json_get_text(r, "device", 512));
    }
    if (wpk_json_has(r, "op") == wpk_json_has(r, "fingerprint")) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "give either op or fingerprint");
    }
    if (wpk_json_has(r, "fingerprint")) {
        wpk_json_get_copy(r, "fingerprint", out->fingerprint, sizeof out->fingerprint);
    }
    wpk_err err = wpk_json_status(r);
    return err == WPK_OK && wpk_json_has(r, "op") ? expand_lookup(r, out, diag) : err;
}

static void answer_lookup(struct wpk_call *call, const struct lookup *lookup)
{
    struct wpk_buf document = {0};
    uint64_t id = 0;
    bool vendor = false;
    bool found =
        wpk_history_lookup(call->api->store, lookup->fingerprint, lookup->layouts, lookup->threads,
                           wpk_buf_text(&lookup->device), &id, &vendor, &document);
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "match", !found ? "none" : vendor ? "vendor" : "exact");
    if (found) {
        wpk_document_kernel_served(w, "kernel", id, "", true, wpk_buf_text(&document));
    } else {
        wpk_json_put_null(w, "kernel");
    }
    wpk_buf_fini(&document);
    wpk_call_json(call, w);
}

void wpk_api_lookup_kernel(struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    struct lookup lookup = {0};
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(call->request->body, call->request->body_size, 0, &r, &diag);
    if (err == WPK_OK) {
        err = decode_lookup(r, &lookup, &diag);
    }
    if (err == WPK_OK && lookup.device.size == 0 &&
        wpk_history_devices(call->api->store, &lookup.device) > 1) {
        snprintf(diag.field, sizeof diag.field, "device");
        wpk_diag_set(&diag, "several devices are known: say which");
        err = WPK_EINVAL;
    }
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, &diag);
    } else {
        answer_lookup(call, &lookup);
    }
    wpk_json_close(r);
    wpk_buf_fini(&lookup.device);
}
