/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_call.h"
#include "coordinator/store/history_admin.h"

void wpk_api_list_audit(struct wpk_call *call)
{
    int page_size;
    uint64_t before;
    if (!wpk_call_page_size(call, &page_size) ||
        !wpk_call_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "entries");
    uint64_t last = wpk_history_list_audit(call->api->store, before, wpk_call_get(call, "actor"),
                                           wpk_call_get(call, "action"), page_size, w);
    wpk_json_end(w);
    wpk_call_put_token(w, last);
    wpk_call_json(call, w);
}
