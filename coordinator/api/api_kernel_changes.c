/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of kernels: pin, unpin, revoke, roll back. */
#include "coordinator/api/api_change.h"
#include "coordinator/store/document.h"
#include "coordinator/store/history_admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct detail {
    int verb; /* index into verbs */
    struct wpk_kernel_change kernel;
    char reason[256];
};

enum { PIN, UNPIN, REVOKE, ROLL_BACK };
static const char *const verbs[] = {"pin", "unpin", "revoke", "rollback"};
static const char *const actions[] = {"kernel.pin", "kernel.unpin", "kernel.revoke",
                                      "kernel.rollback"};
static wpk_err (*const changes[])(struct wpk_store *store, struct wpk_kernel_change *change,
                                  struct wpk_diag *diag) = {
    wpk_history_pin, wpk_history_unpin, wpk_history_revoke, wpk_history_roll_back};

static void append_row(void *user, const struct wpk_kernel_row *row)
{
    struct wpk_change *change = user;
    change->err = wpk_document_kernel_row(row, &change->answer.body);
    change->answer.status = 200;
    change->answer.content_type = "application/json";
}

/* Append the kernel that the accuracy class serves now, as the last members of the answer. */
static void append_next(const struct wpk_kernel_change *kernel, struct wpk_buf *body)
{
    wpk_buf_truncate(body, body->size - 1);
    for (uint32_t i = 0; i < kernel->served_count; i++) {
        if (kernel->served[i].kernel_id == kernel->serves) {
            wpk_buf_printf(body, ",\"serves\":\"k%llu\",\"serves_provider\":\"%s\"}",
                           (unsigned long long)kernel->serves, kernel->served[i].provider);
            return;
        }
    }
    wpk_buf_printf(body,
                   ",\"serves\":null,\"serves_reason\":\"no other kernel of this operator was"
                   " verified for accuracy %s: tune it again\"}",
                   kernel->accuracy);
}

/* "wrong on Tuesdays; serves: standard k12 (halide-cpu), fast k9 (plain)". */
static void log_next(const struct wpk_kernel_change *kernel, char *detail, size_t size)
{
    size_t at = strlen(detail);
    at += (size_t)snprintf(detail + at, size - at, "%sserves:%s", at > 0 ? "; " : "",
                           kernel->served_count == 0 ? " nothing" : "");
    for (uint32_t i = 0; i < kernel->served_count && at < size; i++) {
        at += (size_t)snprintf(detail + at, size - at, "%s %s k%llu (%s)", i > 0 ? "," : "",
                               kernel->served[i].accuracy,
                               (unsigned long long)kernel->served[i].kernel_id,
                               kernel->served[i].provider);
    }
}

static void apply(struct wpk_change *change, struct wpk_store *store)
{
    struct detail *detail = change->detail;
    detail->kernel.reason = detail->reason;
    change->err = changes[detail->verb](store, &detail->kernel, &change->diag);
    if (change->err == WPK_ENOENT) {
        wpk_diag_set(&change->diag, "no such kernel; the list of kernels has their ids");
    }
    if (change->err != WPK_OK) {
        return;
    }
    /* The answer is the kernel that was named; after a rollback, the one that is served now. After
     * a revocation it names the latter, too, and so does the audit log. */
    bool rolls_back = detail->verb == ROLL_BACK;
    uint64_t told = rolls_back ? detail->kernel.serves : detail->kernel.kernel_id;
    if (wpk_history_read_kernel(store, told, append_row, change)) {
        if (detail->verb == REVOKE && change->err == WPK_OK) {
            append_next(&detail->kernel, &change->answer.body);
            log_next(&detail->kernel, change->audit.detail, sizeof change->audit.detail);
        }
        change->index_change = wpk_index_refresh(store, detail->kernel.problem_id);
    }
}

/* Searches that go on race against what is served, and may come to what was revoked. */
static void after(struct wpk_change *change)
{
    const struct wpk_kernel_change *kernel = &((struct detail *)change->detail)->kernel;
    struct wpk_kernel_event event = {.problem_id = kernel->problem_id,
                                     .served_count = kernel->served_count};
    memcpy(event.served, kernel->served, sizeof event.served);
    memcpy(event.revoked_provider, kernel->provider, sizeof event.revoked_provider);
    memcpy(event.revoked_artifact, kernel->artifact_sha256, sizeof event.revoked_artifact);
    wpk_executor_change_kernel(change->executor, &event);
}

/* {"reason": "..."} */
static void get_reason(struct wpk_json_reader *r, void *out)
{
    struct detail *detail = out;
    WPK_JSON_ALLOW(r, "reason");
    if (wpk_json_has(r, "reason")) {
        wpk_json_get_label(r, "reason", detail->reason, sizeof detail->reason);
    }
}

void wpk_api_change_kernel(struct wpk_call *call)
{
    uint64_t id;
    struct detail *detail = WPK_DEMAND(calloc(1, sizeof *detail));
    if (!wpk_call_kernel_id(call, &id) ||
        (call->request->body_size > 0 && !wpk_call_read(call, get_reason, detail))) {
        free(detail);
        return;
    }
    detail->verb = wpk_list_find(verbs, 4, call->verb);
    detail->kernel.kernel_id = id;
    struct wpk_change *change = wpk_change_new(call, actions[detail->verb], call->name);
    memcpy(change->audit.detail, detail->reason, sizeof detail->reason);
    change->detail = detail;
    change->apply = apply;
    change->after = after;
    wpk_change_answer(call, change);
}
