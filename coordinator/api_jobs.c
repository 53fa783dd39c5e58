/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api_call.h"
#include "coordinator/document.h"
#include "coordinator/submission.h"
#include "schema/job.h"

#include <stdio.h>
#include <string.h>

#define PAGE_JOBS_MAX 100 /* with 256 operators each, still less than a client takes at once */

void wpk_api_post_job(struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    struct wpk_job_entry *job = NULL;
    wpk_err err = wpk_submission_decode(call->request->body, call->request->body_size, &job, &diag);
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, &diag);
        return;
    }
    snprintf(job->id, sizeof job->id, "j%016llx", (unsigned long long)call->api->random);
    call->answer->later = true;
    call->answer->event = (struct wpk_event){.kind = WPK_EVENT_SUBMIT,
                                             .request = call->request->id,
                                             .job = job,
                                             .source = call->request->body};
}

void wpk_api_get_job(struct wpk_call *call)
{
    wpk_api_job(call->answer, call->api, 200, call->name);
}

void wpk_api_cancel_job(struct wpk_call *call)
{
    const struct wpk_job_entry *job = wpk_coordinator_job(call->api->coordinator, call->name);
    if (job == NULL || job->finished_wall_ns != 0) {
        wpk_api_get_job(call); /* it has ended, or never was */
        return;
    }
    call->answer->later = true;
    call->answer->event = (struct wpk_event){
        .kind = WPK_EVENT_CANCEL, .request = call->request->id, .job_id = job->id};
}

/* ---- lists */

struct job_list {
    const struct wpk_api *api;
    struct wpk_json_writer *w;
};

static void list_job(void *user, uint64_t number, const char *id, const char *state,
                     const char *document)
{
    struct job_list *list = user;
    const struct wpk_job_entry *job = wpk_coordinator_job(list->api->coordinator, id);
    (void)number;
    (void)state;
    if (document[0] != '\0') {
        wpk_json_put_raw(list->w, NULL, document);
    } else if (job != NULL) {
        wpk_json_begin_object(list->w, NULL);
        wpk_document_job(list->w, list->api->coordinator, job, list->api->now_ns,
                         wpk_store_wall_ns(list->api->store));
        wpk_json_end(list->w);
    }
}

/* The parameter `state`, "" where it is not given; false after answering with a problem. */
static bool get_state(struct wpk_call *call, const char **out)
{
    char detail[128] = "state has to be one of:";
    const char *text = wpk_http_query(call->request, "state");
    *out = text != NULL ? text : "";
    if (**out == '\0') {
        return true;
    }
    for (int i = 0; i < WPK_JOB_STATE_COUNT; i++) {
        const char *name = wpk_job_state_name((enum wpk_job_state)i);
        size_t used = strlen(detail);
        if (strcmp(*out, name) == 0) {
            return true;
        }
        snprintf(detail + used, sizeof detail - used, "%s %s", i > 0 ? "," : "", name);
    }
    wpk_call_problem(call, 422, WPK_EINVAL, "state", detail);
    return false;
}

void wpk_api_list_jobs(struct wpk_call *call)
{
    int page_size;
    uint64_t before;
    const char *state;
    if (!wpk_call_page_size(call, &page_size) || !get_state(call, &state) ||
        !wpk_call_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    if (page_size > PAGE_JOBS_MAX) {
        page_size = PAGE_JOBS_MAX;
    }
    struct job_list list = {.api = call->api, .w = wpk_json_writer_new_object()};
    wpk_json_begin_array(list.w, "jobs");
    uint64_t last =
        wpk_history_list_jobs(call->api->store, before, state, page_size, list_job, &list);
    wpk_json_end(list.w);
    wpk_call_put_token(list.w, last);
    wpk_call_json(call, list.w);
}
