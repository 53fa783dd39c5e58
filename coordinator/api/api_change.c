/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void perform(struct wpk_store_write *write, struct wpk_store *store)
{
    struct wpk_change *change = (struct wpk_change *)write;
    if (change->apply != NULL) {
        change->apply(change, store);
    }
    wpk_history_put_audit(store, &change->audit, change->err);
}

static void done(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_change *change = (struct wpk_change *)write;
    if (err == WPK_OK && change->err == WPK_OK) {
        wpk_index_publish(change->index, change->index_change);
        if (change->after != NULL) {
            change->after(change);
        }
    } else {
        wpk_index_discard(change->index_change);
    }
    if (err != WPK_OK) {
        wpk_api_problem(&change->answer, 507, err, diag);
    } else if (change->err != WPK_OK) {
        int status = change->err == WPK_ENOENT   ? 404
                     : change->err == WPK_EEXIST ? 409
                                                 : wpk_api_status(change->err);
        wpk_api_problem(&change->answer, status, change->err,
                        change->diag.text[0] != '\0' ? &change->diag : NULL);
    }
    if (change->request != 0) {
        wpk_executor_answer(change->executor, change->request, &change->answer);
    } else {
        wpk_api_answer_fini(&change->answer);
    }
    if (change->fini != NULL) {
        change->fini(change);
    }
    free(change->detail);
    free(change);
}

struct wpk_change *wpk_change_new(struct wpk_call *call, const char *action, const char *subject)
{
    const struct wpk_identity *identity = &call->request->identity;
    struct wpk_change *change = WPK_DEMAND(calloc(1, sizeof *change));
    WPK_ASSERT(call->api->executor != NULL);
    change->write = (struct wpk_store_write){.perform = perform, .done = done, .alone = true};
    change->executor = call->api->executor;
    change->index = call->api->index;
    memcpy(change->audit.actor, identity->owner, sizeof change->audit.actor);
    memcpy(change->audit.token, identity->token_id, sizeof change->audit.token);
    memcpy(change->audit.peer, identity->peer, sizeof change->audit.peer);
    snprintf(change->audit.action, sizeof change->audit.action, "%s", action);
    snprintf(change->audit.subject, sizeof change->audit.subject, "%s", subject);
    return change;
}

void wpk_change_answer(struct wpk_call *call, struct wpk_change *change)
{
    change->request = call->request->id;
    call->answer->how = WPK_API_LATER;
    wpk_executor_add_write(change->executor, &change->write);
}

void wpk_change_log(struct wpk_call *call, const char *action, const char *subject, wpk_err outcome,
                    const char *detail)
{
    struct wpk_change *change = wpk_change_new(call, action, subject);
    change->err = outcome;
    snprintf(change->audit.detail, sizeof change->audit.detail, "%s", detail);
    wpk_executor_add_write(change->executor, &change->write);
}

void wpk_change_put_audit(struct wpk_executor *executor, const struct wpk_audit *audit,
                          wpk_err outcome)
{
    struct wpk_change *change = WPK_DEMAND(calloc(1, sizeof *change));
    change->write = (struct wpk_store_write){.perform = perform, .done = done, .alone = true};
    change->executor = executor;
    change->audit = *audit;
    change->err = outcome;
    wpk_executor_add_write(executor, &change->write);
}
