/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl status and cancel: show one job, or cancel it. */
#include "client/command.h"
#include "client/follow.h"
#include "client/output.h"
#include "client/session.h"

#include <stdio.h>
#include <unistd.h>

static wpk_err show(const struct wpk_api_job *job, const struct wpk_session *session,
                    const struct wpk_output *output, struct wpk_arena *arena)
{
    struct wpk_buf out = {0};
    const char *data_dir = session->data_dir.size > 0 ? wpk_buf_text(&session->data_dir) : NULL;

    wpk_buf_printf(&out, "%s  %s  %s%s%s\n", job->id, job->name[0] != '\0' ? job->name : "-",
                   job->state, job->reason[0] != '\0' ? ": " : "", job->reason);
    if (!wpk_api_job_ended(job)) {
        wpk_follow_print(job, false, wpk_output_width(STDOUT_FILENO), &out);
        wpk_buf_append_byte(&out, '\n');
    }
    wpk_err err = WPK_OK;
    if (job->kernel_count > 0) {
        wpk_buf_append_byte(&out, '\n');
        err = wpk_report_print(job, data_dir, output, arena, &out);
    }
    fputs(wpk_buf_text(&out), stdout);
    wpk_buf_fini(&out);
    return err;
}

static enum wpk_exit ask_main(struct wpk_invocation *call, const char *action)
{
    struct wpk_session_options session_options = {.need = action[0] == '\0' ? WPK_SESSION_HISTORY
                                                                            : WPK_SESSION_RUNNING};
    struct wpk_output output = {0};
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session_options),
        WPK_OUTPUT_OPTION_ROWS(output),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};
    struct wpk_http_reply reply = {0};
    struct wpk_arena arena = {0};
    struct wpk_api_job job;

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    wpk_err err = wpk_output_check(&output, &call->diag);
    err = err == WPK_OK ? wpk_session_open(call->context, &session_options, &session, &call->diag)
                        : err;
    if (err == WPK_OK) {
        err = wpk_session_ask_job(&session, call->args.operands[0], action, &arena, &reply, &job,
                                  &call->diag);
    }
    if (err == WPK_OK && output.json) {
        puts(wpk_buf_text(&reply.body));
    } else if (err == WPK_OK) {
        err = show(&job, &session, &output, &arena);
    }
    wpk_arena_fini(&arena);
    wpk_http_reply_fini(&reply);
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}

enum wpk_exit wpk_command_status(struct wpk_invocation *call)
{
    return ask_main(call, "");
}

enum wpk_exit wpk_command_cancel(struct wpk_invocation *call)
{
    return ask_main(call, ":cancel");
}
