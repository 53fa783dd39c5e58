/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command.h"
#include "client/job_file.h"
#include "client/session.h"

#include <stdio.h>

static wpk_err submit(const struct wpk_command_context *context,
                      const struct wpk_session_options *session_options, struct wpk_job *job,
                      bool json, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_session session = {0};
    struct wpk_http_reply reply = {0};
    struct wpk_arena arena = {0};
    struct wpk_api_job accepted;

    wpk_err err = wpk_job_encode(job, &text);
    if (err == WPK_OK) {
        err = wpk_session_open(context, session_options, &session, diag);
    }
    if (err == WPK_OK) {
        err = wpk_session_submit(&session, wpk_buf_text(&text), &reply, diag);
    }
    if (err == WPK_OK) {
        err = wpk_api_decode_job(&reply.body, &arena, &accepted, diag);
    }
    if (err == WPK_OK) {
        puts(json ? wpk_buf_text(&reply.body) : accepted.id);
    }
    wpk_arena_fini(&arena);
    wpk_http_reply_fini(&reply);
    wpk_session_close(&session);
    wpk_buf_fini(&text);
    return err;
}

static enum wpk_exit submit_main(const struct wpk_command *command,
                                 const struct wpk_command_context *context, int argc, char **argv)
{
    struct wpk_session_options session = {.need = WPK_SESSION_RUNNING};
    static struct wpk_job_overrides overrides; /* these three are large, and one per process */
    static struct wpk_job_inline given;
    static struct wpk_job job;
    bool json = false;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session),
        WPK_JOB_OPTION_ROWS(overrides, given),
        {"json", 0, NULL, "the job as JSON", WPK_OPTION_FLAG, &json, 0, 0},
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_args args;
    struct wpk_diag diag = {0};
    enum wpk_exit status;

    if (!wpk_command_begin(command, options, argc, argv, 0, 1, &args, &status)) {
        return status;
    }
    wpk_err err = wpk_job_file_take(args.operand_count > 0 ? args.operands[0] : NULL, &given,
                                    &overrides, &job, &diag);
    if (err == WPK_OK) {
        err = submit(context, &session, &job, json, &diag);
    }
    wpk_job_fini(&job);
    return err != WPK_OK ? wpk_command_fail(err, &diag) : WPK_EXIT_OK;
}

const struct wpk_command wpk_command_submit = {
    .name = "submit",
    .operands = "FILE",
    .summary = "hand a job file, or --op, to a running wpkd and print the job's id",
    .run = submit_main,
};
