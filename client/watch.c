/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command.h"
#include "client/follow.h"
#include "client/report.h"

#include <stdio.h>
#include <string.h>

static wpk_err watch(struct wpk_session *session, const struct wpk_follow_options *follow,
                     bool json, enum wpk_exit *status, struct wpk_diag *diag)
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
        err = json ? wpk_report_encode(&job, data_dir, &out)
                   : wpk_report_print(&job, data_dir, &arena, &out);
        fputs(wpk_buf_text(&out), stdout);
        if (json) {
            fputc('\n', stdout);
        } else if (*status != WPK_EXIT_OK) {
            fprintf(stderr, "wpkctl: the job ended as %s%s%s\n", job.state,
                    job.reason[0] != '\0' ? ": " : "", job.reason);
        }
    }
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
    wpk_http_reply_fini(&reply);
    return err;
}

static enum wpk_exit watch_main(const struct wpk_command *command,
                                const struct wpk_command_context *context, int argc, char **argv)
{
    struct wpk_session_options session_options = {.need = WPK_SESSION_RUNNING};
    struct wpk_follow_options follow = {0};
    bool json = false;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session_options),
        {"json", 0, NULL, "the result as JSON", WPK_OPTION_FLAG, &json, 0, 0},
        {"quiet", 'q', NULL, "no progress", WPK_OPTION_FLAG, &follow.quiet, 0, 0},
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_session session = {0};
    struct wpk_args args;
    struct wpk_diag diag = {0};
    enum wpk_exit status = WPK_EXIT_OK;

    if (!wpk_command_begin(command, options, argc, argv, 1, 1, &args, &status)) {
        return status;
    }
    follow.id = args.operands[0];
    wpk_follow_catch_signals();
    wpk_err err = wpk_session_open(context, &session_options, &session, &diag);
    if (err == WPK_OK) {
        err = watch(&session, &follow, json, &status, &diag);
    }
    if (err != WPK_OK) {
        status = wpk_command_fail(err, &diag);
    }
    wpk_session_close(&session);
    return status;
}

const struct wpk_command wpk_command_watch = {
    .name = "watch",
    .operands = "JOB",
    .summary = "follow a job until it ends; Ctrl-C stops only the watching",
    .run = watch_main,
};
