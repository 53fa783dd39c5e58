/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl jobs: list jobs; pause, resume or cancel one. */
#include "client/show.h"

#include <inttypes.h>
#include <stdio.h>

static void fill_jobs(const void *user WPK_UNUSED, const struct wpk_api_list *list,
                      struct wpk_text_table *table)
{
    for (int i = 0; i < list->count; i++) {
        const struct wpk_api_job *job = &list->jobs[i];
        int64_t tried = 0;
        int64_t wanted = 0;
        char progress[64];
        char ops[16];
        for (int k = 0; k < job->op_count; k++) {
            tried += job->ops[k].measured + job->ops[k].failed;
            wanted += job->ops[k].wanted;
        }
        snprintf(progress, sizeof(progress), "%" PRId64 "/%" PRId64, tried, wanted);
        snprintf(ops, sizeof(ops), "%d", job->op_count);
        wpk_text_table_add(table, (const char *const[]){job->id, job->name, job->owner, job->state,
                                                        ops, progress, job->created, job->reason});
    }
}

static const struct wpk_show jobs_show = {
    .path = "/v1/jobs",
    .key = "jobs",
    .column_count = 8,
    .headings = {"job", "name", "owner", "state", "ops", "tried", "created", "reason"},
    .right = {[4] = true, [5] = true},
    .rank = {[1] = 1, [2] = 6, [4] = 4, [5] = 2, [6] = 3, [7] = 5},
    .fill = fill_jobs,
};

static wpk_err change(const struct wpk_command_context *context, struct wpk_show_options *options,
                      const char *verb, const char *job, struct wpk_diag *diag)
{
    static const char *const verbs[] = {"pause", "resume", "cancel", NULL};
    static const char *const members[] = {"id", "name", "state", NULL};
    char path[64];

    if (wpk_show_verb(verb, verbs, diag) < 0 || !wpk_session_is_job_id(job, diag)) {
        return WPK_EINVAL;
    }
    snprintf(path, sizeof(path), "/v1/jobs/%s:%s", job, verb);
    return wpk_show_change(context, options, path, "", members, diag);
}

enum wpk_exit wpk_command_jobs(struct wpk_invocation *call)
{
    struct wpk_show_options show = {.max = WPK_SHOW_MAX_DEFAULT};
    const char *state = NULL;
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show),
        WPK_ARGS_TEXT("state", "NAME", "only those that are queued, running, paused, done, ...",
                      &state),
        WPK_ARGS_END,
    };
    struct wpk_buf query = {0};
    wpk_err err = WPK_OK;

    if (!wpk_command_begin(call, options, 0, 2)) {
        return call->status;
    }
    if (call->args.operand_count == 1) {
        err = wpk_fail(&call->diag, WPK_EINVAL,
                       "jobs %s takes the id of a job; wpkctl jobs lists them",
                       call->args.operands[0]);
    } else if (call->args.operand_count == 2) {
        show.session.need = WPK_SESSION_RUNNING;
        err = change(call->context, &show, call->args.operands[0], call->args.operands[1],
                     &call->diag);
    } else {
        show.session.need = WPK_SESSION_HISTORY;
        wpk_show_add(&query, "state", state);
        err = wpk_show_list(call->context, &show, &jobs_show, wpk_buf_text(&query), &call->diag);
    }
    wpk_buf_fini(&query);
    return wpk_command_end(call, err);
}
