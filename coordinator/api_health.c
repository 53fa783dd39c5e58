/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api_call.h"

void wpk_api_get_health(struct wpk_call *call)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "status", "ok");
    wpk_json_put_text(w, "version", WPK_VERSION);
    wpk_call_json(call, w);
}
