/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command.h"
#include "client/follow.h"
#include "client/output.h"

#include <stdio.h>
#include <string.h>

static wpk_err watch(struct wpk_session *session, const struct wpk_follow_options *follow,
                     const struct wpk_output *output, enum wpk_exit *status, struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_arena arena = {0};
    struct wpk_api_job job = {0};
    struct wpk_buf out = {0};
    const char *data_dir = session->data_dir.size > 0 ? wpk_buf_text(&session->data_dir) : NULL;

    wpk_err err = wpk_follow(session, follow, &arena, &reply, &job, diag);
    if (err == WPK_OK && wpk_follow_interrupted()) {
        *status = WPK_EXIT_INTERRUPTED;
    } else if (err == WPK_OK) {
        *status = strcmp(job.state, "done") == 0 ? WPK_EXIT_OK : WPK_EXIT_FAILED;
        err = output->json ? wpk_report_encode(&job, data_dir, &out)
                           : wpk_report_print(&job, data_dir, output, &arena, &out);
        fputs(wpk_buf_text(&out), stdout);
        if (output->json) {
            fputc('\n', stdout);
        } else if (*status != WPK_EXIT_OK) {
            wpk_follow_complain(&job);
        }
    }
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
    wpk_http_reply_fini(&reply);
    return err;
}

/* Where no wpkd runs, history still tells of a job that has ended; nothing works on another one. */
static wpk_err open_history(const struct wpk_command_context *context,
                            struct wpk_session_options *options, const char *id,
                            struct wpk_session *session, struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_arena arena = {0};
    struct wpk_api_job job = {0};

    options->need = WPK_SESSION_HISTORY;
    wpk_err err = wpk_session_open(context, options, session, diag);
    err = err == WPK_OK ? wpk_session_ask_job(session, id, "", &arena, &reply, &job, diag) : err;
    if (err == WPK_OK && !wpk_api_job_ended(&job)) {
        err =
            wpk_fail(diag, WPK_ECLOSED,
                     "job %s is %s, and nothing works on it: start wpkd, or go on with wpkctl tune",
                     id, job.state);
    }
    wpk_http_reply_fini(&reply);
    wpk_arena_fini(&arena);
    return err;
}

static wpk_err open_session(const struct wpk_command_context *context,
                            struct wpk_session_options *options, const char *id,
                            struct wpk_session *session, struct wpk_diag *diag)
{
    struct wpk_diag found = {0};

    if (!wpk_session_is_job_id(id, diag)) {
        return WPK_EINVAL;
    }
    wpk_err err = wpk_session_open(context, options, session, &found);
    if (err == WPK_ECLOSED && session->access.server[0] == '\0') {
        wpk_session_close(session);
        return open_history(context, options, id, session, diag);
    }
    if (err != WPK_OK) {
        *diag = found;
    }
    return err;
}

enum wpk_exit wpk_command_watch(struct wpk_invocation *call)
{
    struct wpk_session_options session_options = {.need = WPK_SESSION_RUNNING};
    struct wpk_follow_options follow = {0};
    struct wpk_output output = {0};
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session_options),
        WPK_OUTPUT_OPTION_ROWS(output),
        WPK_ARGS_ROW("quiet", 'q', NULL, "no progress", FLAG, &follow.quiet, 0, 0),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    follow.id = call->args.operands[0];
    wpk_follow_catch_signals();
    wpk_err err = wpk_output_check(&output, &call->diag);
    if (err == WPK_OK) {
        err = open_session(call->context, &session_options, follow.id, &session, &call->diag);
    }
    err = err == WPK_OK ? watch(&session, &follow, &output, &call->status, &call->diag) : err;
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}
