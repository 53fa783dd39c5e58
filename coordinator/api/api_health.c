/* SPDX-License-Identifier: Apache-2.0 */
/* Resources for a supervisor: health, readiness, metrics and the signing key. */
#include "common/metrics.h"
#include "coordinator/api/api_call.h"
#include "coordinator/effects/executor.h"

#include <stdio.h>

void wpk_api_get_health(struct wpk_call *call)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "status", "ok");
    wpk_json_put_text(w, "version", WPK_VERSION);
    wpk_call_json(call, w);
}

/* `reasons` it is not ready for; "": those that there are not. */
static void answer_ready(struct wpk_call *call, const char *const reasons[], int count)
{
    bool ready = true;
    for (int i = 0; i < count; i++) {
        ready = ready && reasons[i][0] == '\0';
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "status", ready ? "ready" : "not ready");
    wpk_json_begin_array(w, "reasons");
    for (int i = 0; i < count; i++) {
        if (reasons[i][0] != '\0') {
            wpk_json_put_text(w, NULL, reasons[i]);
        }
    }
    wpk_json_end(w);
    wpk_call_json(call, w);
    if (call->answer->status == 200 && !ready) {
        call->answer->status = 503;
        call->answer->retry_after_s = 1;
    }
}

/* Answered by the loop: if it does not turn, nobody is told that all is well. But not with what
 * waits for the store, and without the loop where the store stands still: then it takes nothing
 * in. */
void wpk_api_get_ready(struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    int64_t stalled_s = wpk_metric_gauged(WPK_GAUGE_STORE_STALLED, 0);
    if (call->api->executor == NULL && stalled_s < WPK_API_STALLED_S && wpk_call_queue(call)) {
        return;
    }
    wpk_err err =
        call->api->executor != NULL ? wpk_executor_degraded(call->api->executor, &diag) : WPK_OK;
    if (err != WPK_OK && diag.text[0] == '\0') {
        wpk_diag_set(&diag, "%s", wpk_err_text(err));
    }
    char stalled[64] = "";
    if (stalled_s >= WPK_API_STALLED_S) {
        snprintf(stalled, sizeof stalled, "the store has not answered for %lld s",
                 (long long)stalled_s);
    }
    bool draining = wpk_metric_gauged(WPK_GAUGE_DRAINING, 0) != 0;
    const char *const reasons[] = {diag.text, stalled, draining ? "wpkd is ending" : ""};
    answer_ready(call, reasons, 3);
    if (call->api->executor != NULL) {
        wpk_executor_answer(call->api->executor, call->request->id, call->answer);
        call->answer->how = WPK_API_LATER;
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
