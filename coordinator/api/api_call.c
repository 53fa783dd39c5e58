/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_call.h"

#include "coordinator/store/document.h"
#include "coordinator/store/history_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SIZE_DEFAULT 100
#define PAGE_SIZE_MAX 1000

/* ---- answers */

bool wpk_call_problem(struct wpk_call *call, int status, wpk_err err, const char *field,
                      const char *text)
{
    struct wpk_diag diag = {0};
    wpk_diag_set(&diag, "%s", text);
    snprintf(diag.field, sizeof diag.field, "%s", field);
    return wpk_api_problem(call->answer, status, err, &diag);
}

bool wpk_call_read(struct wpk_call *call, void (*get)(struct wpk_json_reader *r, void *out),
                   void *out)
{
    struct wpk_diag diag = {0};
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(call->request->body, call->request->body_size, 0, &r, &diag);
    if (err == WPK_OK) {
        get(r, out);
        err = wpk_json_status(r);
    }
    wpk_json_close(r);
    return err == WPK_OK || wpk_api_problem(call->answer, wpk_api_status(err), err, &diag);
}

int wpk_api_status(wpk_err err)
{
    switch (err) {
    case WPK_EPARSE:
        return 400;
    case WPK_ENOENT:
    case WPK_EINVAL:
    case WPK_ERANGE:
    case WPK_EUNSUPPORTED:
        return 422;
    case WPK_ENOSPC:
        return 507;
    default:
        return 500;
    }
}

void wpk_call_text(struct wpk_call *call)
{
    wpk_err err = wpk_buf_status(&call->answer->body);
    call->answer->status = 200;
    call->answer->content_type = "application/json";
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, NULL);
    }
}

void wpk_call_json(struct wpk_call *call, struct wpk_json_writer *w)
{
    wpk_err err = wpk_json_finish(w, false, &call->answer->body);
    if (err == WPK_OK) {
        wpk_call_text(call);
    } else {
        wpk_api_problem(call->answer, wpk_api_status(err), err, NULL);
    }
}

bool wpk_call_queue(struct wpk_call *call)
{
    if (call->api->front == NULL) {
        return false;
    }
    call->answer->how = WPK_API_QUEUE;
    return true;
}

void wpk_api_no_job(struct wpk_api_answer *answer, const struct wpk_api *api, const char *id)
{
    struct wpk_buf gone = {0};
    struct wpk_diag diag = {0};
    wpk_diag_set(&diag, "there is no job %s; the list of jobs has their ids", id);
    if (wpk_history_gone_job(api->store, id, &gone, diag.text, sizeof diag.text)) {
        wpk_api_problem(answer, 410, WPK_ENOENT, &diag);
        answer->body.size--; /* its '}' */
        wpk_buf_printf(&answer->body, ",\"gone\":%s}", wpk_buf_text(&gone));
    } else {
        wpk_api_problem(answer, 404, WPK_ENOENT, &diag);
    }
    wpk_buf_fini(&gone);
}

void wpk_api_job(struct wpk_api_answer *answer, const struct wpk_api *api, int status,
                 const char *id)
{
    wpk_err err =
        wpk_document_job_whole(api->coordinator, api->store, id, api->now_ns, &answer->body);
    if (err == WPK_ENOENT) {
        wpk_api_no_job(answer, api, id);
        return;
    }
    if (err == WPK_EBUSY) {
        struct wpk_diag diag = {0};
        wpk_diag_set(&diag, "job %s is being read from the store; ask again later", id);
        wpk_api_problem(answer, 503, err, &diag);
        return;
    }
    if (err != WPK_OK) {
        wpk_api_problem(answer, wpk_api_status(err), err, NULL);
        return;
    }
    answer->how = WPK_API_NOW;
    answer->status = status;
    answer->content_type = "application/json";
    if (status == 201) {
        snprintf(answer->location, sizeof answer->location, "/v1/jobs/%s", id);
    }
}

/* ---- parameters */

const char *wpk_call_get(const struct wpk_call *call, const char *name)
{
    const char *text = wpk_http_query(call->request, name);
    return text != NULL ? text : "";
}

/* A decimal parameter in [min, max]; false after answering with a problem. */
bool wpk_call_number(struct wpk_call *call, const char *name, uint64_t fallback, uint64_t min,
                     uint64_t max, uint64_t *out)
{
    const char *text = wpk_http_query(call->request, name);
    *out = fallback;
    if (text == NULL || (text[0] == '\0' && strcmp(name, "page_token") == 0)) {
        return true;
    }
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out >= min &&
        *out <= max) {
        return true;
    }
    char detail[128];
    snprintf(detail, sizeof detail, "%s has to be a number from %llu to %llu", name,
             (unsigned long long)min, (unsigned long long)max);
    return wpk_call_problem(call, 422, WPK_ERANGE, name, detail);
}

bool wpk_call_page_size(struct wpk_call *call, int *out)
{
    uint64_t size;
    bool ok = wpk_call_number(call, "page_size", PAGE_SIZE_DEFAULT, 1, PAGE_SIZE_MAX, &size);
    *out = (int)size;
    return ok;
}

void wpk_call_put_token(struct wpk_json_writer *w, uint64_t token)
{
    char text[24] = "";
    if (token != 0) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)token);
    }
    wpk_json_put_text(w, "next_page_token", text);
}
