/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api_call.h"
#include "coordinator/document.h"
#include "coordinator/performer.h"
#include "coordinator/submission.h"
#include "schema/job.h"

#include <stdio.h>
#include <stdlib.h>
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
    call->answer->how = WPK_API_STEP;
    call->answer->event = (struct wpk_event){.kind = WPK_EVENT_SUBMIT,
                                             .request = call->request->id,
                                             .job = job,
                                             .source = call->request->body};
}

/* Reads a job that has ended in the state, once that is in the store. */
struct job_order {
    struct wpk_order order;
    struct wpk_performer *performer;
    uint64_t request;
    char id[WPK_ID_MAX];
    struct wpk_api_answer answer;
};

static void read_ended(struct wpk_order *base, struct wpk_store *store)
{
    struct job_order *order = (struct job_order *)base;
    const struct wpk_api api = {.store = store};
    wpk_api_job(&order->answer, &api, 200, order->id);
}

static void answer_order(struct wpk_order *base, wpk_err err, const struct wpk_diag *diag)
{
    struct job_order *order = (struct job_order *)base;
    if (err != WPK_OK) {
        wpk_api_problem(&order->answer, wpk_api_status(err), err, diag);
    }
    wpk_performer_answer(order->performer, order->request, &order->answer);
    free(order);
}

/* It has ended in the state; the commit that says so in the store may be under way. */
static void wait_for_job(struct wpk_call *call)
{
    struct job_order *order = calloc(1, sizeof *order);
    WPK_ASSERT(order != NULL);
    order->order = (struct wpk_order){.perform = read_ended, .done = answer_order};
    order->performer = call->api->performer;
    order->request = call->request->id;
    memcpy(order->id, call->name, sizeof order->id);
    call->answer->how = WPK_API_ORDER;
    wpk_performer_order(call->api->performer, &order->order);
}

void wpk_api_get_job(struct wpk_call *call)
{
    const struct wpk_api *api = call->api;
    struct wpk_buf document = {0};
    uint64_t number;
    bool known = wpk_history_job_document(api->store, call->name, &document, &number);
    if (known && document.size == 0 && wpk_call_queue(call)) {
        wpk_buf_fini(&document);
        return;
    }
    bool live = api->coordinator != NULL && wpk_coordinator_job(api->coordinator, call->name);
    if (known && document.size == 0 && !live) {
        wait_for_job(call);
    } else {
        wpk_api_job(call->answer, api, 200, call->name);
    }
    wpk_buf_fini(&document);
}

void wpk_api_cancel_job(struct wpk_call *call)
{
    const struct wpk_job_entry *job = wpk_coordinator_job(call->api->coordinator, call->name);
    if (job == NULL || job->finished_wall_ns != 0) {
        wpk_api_get_job(call); /* it has ended, or never was */
        return;
    }
    call->answer->how = WPK_API_STEP;
    call->answer->event = (struct wpk_event){
        .kind = WPK_EVENT_CANCEL, .request = call->request->id, .job_id = job->id};
}

/* ---- lists */

struct job_list {
    struct wpk_call *call;
    struct wpk_json_writer *w;
};

static void list_job(void *user, uint64_t number, const char *id, const char *state,
                     const char *document)
{
    struct job_list *list = user;
    const struct wpk_api *api = list->call->api;
    (void)number;
    (void)state;
    if (document[0] != '\0') {
        wpk_json_put_raw(list->w, NULL, document);
        return;
    }
    const struct wpk_job_entry *job =
        wpk_call_queue(list->call) ? NULL : wpk_coordinator_job(api->coordinator, id);
    if (job != NULL) {
        wpk_json_begin_object(list->w, NULL);
        wpk_document_job(list->w, api->coordinator, job, api->now_ns,
                         wpk_store_wall_ns(api->store));
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
    struct job_list list = {.call = call, .w = wpk_json_writer_new_object()};
    wpk_json_begin_array(list.w, "jobs");
    uint64_t last =
        wpk_history_list_jobs(call->api->store, before, state, page_size, list_job, &list);
    wpk_json_end(list.w);
    wpk_call_put_token(list.w, last);
    wpk_call_json(call, list.w);
}
