/* SPDX-License-Identifier: Apache-2.0 */
#include "client/show.h"

static const struct wpk_show audit_show = {
    .path = "/v1/audit",
    .key = "entries",
    .column_count = 7,
    .headings = {"at", "actor", "peer", "action", "subject", "outcome", "detail"},
    .rank = {[1] = 2, [2] = 5, [3] = 0, [4] = 1, [5] = 3, [6] = 4},
    .members = {"at", "actor", "peer", "action", "subject", "outcome", "detail"},
};

enum wpk_exit wpk_command_audit(struct wpk_invocation *call)
{
    struct wpk_show_options show = {.max = WPK_SHOW_MAX_DEFAULT,
                                    .session = {.need = WPK_SESSION_HISTORY}};
    const char *actor = NULL;
    const char *action = NULL;
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show),
        WPK_ARGS_TEXT("actor", "NAME", "only what this one did", &actor),
        WPK_ARGS_TEXT("action", "NAME", "only this, such as kernel.revoke", &action),
        WPK_ARGS_END,
    };
    struct wpk_buf query = {0};

    if (!wpk_command_begin(call, options, 0, 0)) {
        return call->status;
    }
    wpk_show_add(&query, "actor", actor);
    wpk_show_add(&query, "action", action);
    wpk_err err =
        wpk_show_list(call->context, &show, &audit_show, wpk_buf_text(&query), &call->diag);
    wpk_buf_fini(&query);
    return wpk_command_end(call, err);
}
