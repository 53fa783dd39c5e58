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

static enum wpk_exit audit_main(const struct wpk_command *command,
                                const struct wpk_command_context *context, int argc, char **argv)
{
    struct wpk_show_options show = {.max = WPK_SHOW_MAX_DEFAULT,
                                    .session = {.need = WPK_SESSION_HISTORY}};
    const char *actor = NULL;
    const char *action = NULL;
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show),
        {"actor", 0, "NAME", "only what this one did", WPK_OPTION_TEXT, &actor, 0, 0},
        {"action", 0, "NAME", "only this, such as kernel.revoke", WPK_OPTION_TEXT, &action, 0, 0},
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_args args;
    struct wpk_buf query = {0};
    struct wpk_diag diag = {0};
    enum wpk_exit status = WPK_EXIT_OK;

    if (!wpk_command_begin(command, options, argc, argv, 0, 0, &args, &status)) {
        return status;
    }
    wpk_show_add(&query, "actor", actor);
    wpk_show_add(&query, "action", action);
    wpk_err err = wpk_show_list(context, &show, &audit_show, wpk_buf_text(&query), &diag);
    wpk_buf_fini(&query);
    return err != WPK_OK ? wpk_command_fail(err, &diag) : WPK_EXIT_OK;
}

const struct wpk_command wpk_command_audit = {
    .name = "audit",
    .operands = "",
    .summary = "who changed what, and whose credential was refused; newest first",
    .run = audit_main,
};
