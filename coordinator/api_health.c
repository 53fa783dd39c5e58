/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor asks: does it live, can it be given work, what has it counted, who signs. */
#include "common/metrics.h"
#include "coordinator/api_call.h"
#include "coordinator/performer.h"

void wpk_api_get_health(struct wpk_call *call)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "status", "ok");
    wpk_json_put_text(w, "version", WPK_VERSION);
    wpk_call_json(call, w);
}

/* Answered by the loop: if it does not turn, nobody is told that all is well. */
void wpk_api_get_ready(struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_performer_degraded(call->api->performer, &diag);
    bool draining = wpk_metric_gauged(WPK_GAUGE_DRAINING, 0) != 0;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "status", err == WPK_OK && !draining ? "ready" : "not ready");
    wpk_json_begin_array(w, "reasons");
    if (err != WPK_OK) {
        wpk_json_put_text(w, NULL, diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
    }
    if (draining) {
        wpk_json_put_text(w, NULL, "wpkd is ending");
    }
    wpk_json_end(w);
    wpk_call_json(call, w);
    if (call->answer->status == 200 && (err != WPK_OK || draining)) {
        call->answer->status = 503;
        call->answer->retry_after_s = 1;
    }
}

void wpk_api_get_metrics(struct wpk_call *call)
{
    wpk_metrics_print(&call->answer->body);
    wpk_call_text(call);
    if (call->answer->status == 200) {
        call->answer->content_type = WPK_METRICS_CONTENT_TYPE;
    }
}

void wpk_api_get_signing_key(struct wpk_call *call)
{
    if (call->api->public_key == NULL) {
        wpk_call_problem(call, 404, WPK_ENOENT, "", "this wpkd signs nothing");
        return;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "algorithm", "ed25519");
    wpk_json_put_text(w, "public_key", call->api->public_key);
    wpk_call_json(call, w);
}
