/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of workers. The sessions of a token end when the token is revoked or expires. */
#include "coordinator/effects/executor_parts.h"

#include "coordinator/access/auth.h"

#define RECHECK_MS 1000

bool wpk_executor_may_join(const struct wpk_executor *p, const struct wpk_net_address *address,
                           const struct wpk_hello *hello, struct wpk_diag *diag)
{
    struct wpk_identity identity;
    uint64_t wall_ns = wpk_clock_wall_ns(p->options.clock);
    if (p->options.auth == NULL || address->is_local ||
        wpk_worker_auth_check(p->options.auth, hello, wall_ns, &identity, diag) == WPK_OK) {
        return true;
    }
    if (p->options.refused != NULL) {
        p->options.refused(p->options.refused_user, address, &identity, diag->text);
    }
    return false;
}

/* Why the worker's token is good no more; NULL: it is, or it needs none. */
static const char *token_fault(const struct wpk_executor *p, const struct wpk_worker *worker)
{
    if (p->options.auth == NULL || worker->is_local) {
        return NULL;
    }
    return wpk_auth_fault(p->options.auth, worker->token_hash, wpk_clock_wall_ns(p->options.clock));
}

void wpk_executor_recheck_workers(struct wpk_executor *p)
{
    if (p->degraded || p->options.auth == NULL) {
        return;
    }
    p->recheck_ns = wpk_executor_now_ns(p) + RECHECK_MS * WPK_NS_PER_MS;
    for (uint32_t i = 0; i < wpk_coordinator_worker_count(p->coordinator); i++) {
        const struct wpk_worker *worker = wpk_coordinator_worker(p->coordinator, i);
        struct wpk_event event = {.kind = WPK_EVENT_WORKER_END,
                                  .session = worker->session,
                                  .fault = token_fault(p, worker)};
        if (event.fault != NULL) {
            wpk_executor_follow_up(p, &event);
        }
    }
}

bool wpk_executor_may_go_on(struct wpk_executor *p, const struct wpk_message *message,
                            struct wpk_diag *diag)
{
    const struct wpk_worker *worker =
        message->kind != WPK_MESSAGE_HELLO
            ? wpk_coordinator_find_session(p->coordinator, message->session)
            : NULL;
    const char *fault = worker != NULL ? token_fault(p, worker) : NULL;
    if (fault != NULL) {
        struct wpk_event event = {
            .kind = WPK_EVENT_WORKER_END, .session = message->session, .fault = fault};
        wpk_executor_step_one(p, &event);
        wpk_diag_set(diag, "%s", fault);
    }
    return fault == NULL;
}
