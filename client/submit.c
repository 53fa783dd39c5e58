/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command.h"
#include "client/job_file.h"
#include "client/session.h"

#include <stdio.h>

wpk_err wpk_session_submit_shown(struct wpk_session *session, const char *text, bool json,
                                 struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_arena arena = {0};
    struct wpk_api_job accepted;

    wpk_err err = wpk_session_submit(session, text, &reply, diag);
    err = err == WPK_OK ? wpk_api_decode_job(&reply.body, &arena, &accepted, diag) : err;
    if (err == WPK_OK) {
        puts(json ? wpk_buf_text(&reply.body) : accepted.id);
    }
    wpk_arena_fini(&arena);
    wpk_http_reply_fini(&reply);
    return err;
}

static wpk_err submit(const struct wpk_command_context *context,
                      const struct wpk_session_options *session_options, struct wpk_job *job,
                      bool json, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_session session = {0};

    wpk_err err = wpk_job_encode(job, &text);
    err = err == WPK_OK ? wpk_session_open(context, session_options, &session, diag) : err;
    err = err == WPK_OK ? wpk_session_submit_shown(&session, wpk_buf_text(&text), json, diag) : err;
    wpk_session_close(&session);
    wpk_buf_fini(&text);
    return err;
}

enum wpk_exit wpk_command_submit(struct wpk_invocation *call)
{
    struct wpk_session_options session = {.need = WPK_SESSION_RUNNING};
    static struct wpk_job_overrides overrides; /* these three are large, and one per process */
    static struct wpk_job_inline given;
    static struct wpk_job job;
    bool json = false;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session),
        WPK_JOB_OPTION_ROWS(overrides, given),
        WPK_ARGS_FLAG("json", "the job as JSON", &json),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 0, 1)) {
        return call->status;
    }
    wpk_err err = wpk_job_file_take(call->args.operand_count > 0 ? call->args.operands[0] : NULL,
                                    &given, &overrides, &job, &call->diag);
    err = err == WPK_OK ? submit(call->context, &session, &job, json, &call->diag) : err;
    wpk_job_fini(&job);
    return wpk_command_end(call, err);
}
