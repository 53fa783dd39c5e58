/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api_call.h"
#include "coordinator/document.h"

void wpk_api_list_workers(struct wpk_call *call)
{
    const struct wpk_coordinator *coordinator = call->api->coordinator;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "workers");
    for (uint32_t i = 0; i < wpk_coordinator_worker_count(coordinator); i++) {
        wpk_document_worker(w, wpk_coordinator_worker(coordinator, i), call->api->now_ns);
    }
    wpk_json_end(w);
    wpk_call_json(call, w);
}
