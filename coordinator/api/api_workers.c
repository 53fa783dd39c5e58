/* SPDX-License-Identifier: Apache-2.0 */
/* Workers, their admin states, and their devices. */
#include "coordinator/api/api_change.h"
#include "coordinator/state/demand.h"
#include "coordinator/store/document.h"

#include <string.h>

#define WORKER_NAME_MAX 128

/* Pages go by the workers' places in the table: one that comes or goes in between may be missed. */
void wpk_api_list_workers(struct wpk_call *call)
{
    const struct wpk_coordinator *coordinator = call->api->coordinator;
    int page_size;
    uint64_t first;
    uint32_t count = coordinator->worker_count;
    if (!wpk_call_page_size(call, &page_size) ||
        !wpk_call_number(call, "page_token", 0, 1, UINT32_MAX, &first)) {
        return;
    }
    uint64_t end = first + (uint64_t)page_size < count ? first + (uint64_t)page_size : count;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "workers");
    for (uint64_t i = first; i < end; i++) {
        wpk_document_worker(w, coordinator->workers[(uint32_t)i], call->api->now_ns);
    }
    wpk_json_end(w);
    wpk_call_put_token(w, end < count ? end : 0);
    wpk_call_json(call, w);
}

void wpk_api_admin_state(struct wpk_api_answer *answer, int status, const char *name,
                         enum wpk_admin_state state, const char *reason)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "name", name);
    wpk_json_put_text(w, "order", wpk_admin_state_name(state));
    wpk_json_put_text(w, "reason", reason != NULL ? reason : "");
    wpk_err err = wpk_json_finish(w, false, &answer->body);
    answer->status = status;
    answer->content_type = "application/json";
    if (err != WPK_OK) {
        wpk_api_problem(answer, wpk_api_status(err), err, NULL);
    }
}

struct named {
    char name[WORKER_NAME_MAX];
    char reason[WPK_REASON_MAX];
};

static void get_named(struct wpk_json_reader *r, void *out)
{
    struct named *named = out;
    WPK_JSON_ALLOW(r, "name", "reason");
    wpk_json_get_copy(r, "name", named->name, sizeof named->name);
    if (wpk_json_has(r, "reason")) {
        wpk_json_get_label(r, "reason", named->reason, sizeof named->reason);
    }
    if (wpk_json_status(r) == WPK_OK && named->name[0] == '\0') {
        wpk_json_fail(r, "name", WPK_EINVAL, "a worker has a name");
    }
}

void wpk_api_set_worker(struct wpk_call *call)
{
    static const char *const verbs[] = {"drain", "quarantine", "resume"};
    static const char *const actions[] = {"worker.drain", "worker.quarantine", "worker.resume"};
    static const enum wpk_admin_state states[] = {WPK_ADMIN_STATE_DRAIN, WPK_ADMIN_STATE_QUARANTINE,
                                                  WPK_ADMIN_STATE_NONE};
    int verb = wpk_list_find(verbs, 3, call->verb);
    enum wpk_admin_state state = states[verb];
    struct named named = {.name = ""};
    if (!wpk_call_read(call, get_named, &named)) {
        return;
    }
    wpk_err err = wpk_admin_state_check(call->api->coordinator, named.name, state);
    wpk_change_log(call, actions[verb], named.name, err, named.reason);
    struct wpk_event event = {.kind = WPK_EVENT_WORKER_SET,
                              .request = call->request->id,
                              .worker = named.name,
                              .admin_state = state,
                              .reason = named.reason};
    call->answer->how = WPK_API_LATER;
    wpk_executor_step(call->api->executor, &event);
}

/* True if a worker of this device, a class or a kind, could do the work, whatever its labels. */
static bool is_for(const struct wpk_demand *demand, const char *device)
{
    const struct wpk_job_entry *job = demand->job;
    bool any_of_kind = job->device[0] == '\0' && strlen(job->kind) == strcspn(device, "/") &&
                       strncmp(device, job->kind, strlen(job->kind)) == 0;
    return job->label_count == 0 && (any_of_kind || strcmp(device, wpk_demand_device(demand)) == 0);
}

static void put_demand(struct wpk_json_writer *w, const struct wpk_demand *demand)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "device", wpk_demand_device(demand));
    wpk_json_begin_object(w, "labels");
    for (uint32_t i = 0; i < demand->job->label_count; i++) {
        wpk_json_put_text(w, demand->job->labels[i].name, demand->job->labels[i].value);
    }
    wpk_json_end(w);
    wpk_json_put_int(w, "workers", wpk_demand_workers(demand));
    wpk_json_end(w);
}

void wpk_api_get_demand(struct wpk_call *call)
{
    struct wpk_demand demands[WPK_JOBS_LIVE_MAX];
    const char *device = wpk_call_get(call, "device");
    int64_t workers = 0;
    uint32_t count = wpk_demand_list(call->api->coordinator, call->api->now_ns, demands);
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "demand");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t wanted = wpk_demand_workers(&demands[i]);
        if (wanted > 0 && (device[0] == '\0' || is_for(&demands[i], device))) {
            put_demand(w, &demands[i]);
            workers += wanted;
        }
    }
    wpk_json_end(w);
    wpk_json_put_int(w, "workers", workers);
    wpk_call_json(call, w);
}

void wpk_api_list_devices(struct wpk_call *call)
{
    if (!wpk_call_index(call)) {
        return;
    }
    const struct wpk_index_version *version = wpk_index_acquire(call->api->index);
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "devices");
    for (uint32_t i = 0; i < version->device_count; i++) {
        const struct wpk_index_device *device = &version->devices[i];
        struct wpk_index_cursor cursor;
        const struct wpk_served *served;
        uint32_t kernels = 0;
        wpk_index_seek(&cursor, version, WPK_INDEX_BY_DEVICE, wpk_served_device_key(device->name),
                       0);
        while ((served = wpk_index_next(&cursor)) != NULL) {
            kernels += strcmp(served->device, device->name) == 0;
        }
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "device", device->name);
        wpk_json_put_text(w, "environment", device->environment);
        wpk_json_put_int(w, "kernels", kernels);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_call_json(call, w);
    wpk_index_release(call->api->index, version);
}
