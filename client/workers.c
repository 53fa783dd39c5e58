/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl workers: list workers; set the admin state of one. */
#include "client/show.h"

#include <inttypes.h>
#include <stdio.h>

static void fill_workers(const void *user WPK_UNUSED, const struct wpk_api_list *list,
                         struct wpk_text_table *table)
{
    for (int i = 0; i < list->count; i++) {
        const struct wpk_api_worker *worker = &list->workers[i];
        char device[512]; /* the class, and of a GPU what is not in it */
        char running[24];
        char heard[WPK_FORMAT_SIZE];
        int used = snprintf(device, sizeof(device), "%s", worker->device);
        if (worker->driver[0] != '\0') {
            snprintf(device + used, sizeof(device) - (size_t)used, ", %" PRId64 " MiB, driver %s",
                     worker->memory_bytes >> 20, worker->driver);
        }
        snprintf(running, sizeof(running), "%" PRId64, worker->running);
        wpk_format_seconds(worker->heard_seconds_ago, heard);
        wpk_text_table_add(table, (const char *const[]){worker->name, worker->state, device,
                                                        worker->providers, worker->missing, running,
                                                        heard, worker->reason});
    }
}
static const struct wpk_show workers_show = {
    .path = "/v1/workers",
    .key = "workers",
    .column_count = 8,
    .headings = {"worker", "state", "device", "providers", "missing", "running", "heard ago",
                 "reason"},
    .right = {[5] = true, [6] = true},
    .rank = {[2] = 3, [3] = 6, [4] = 5, [5] = 2, [6] = 1, [7] = 4},
    .fill = fill_workers,
};

static wpk_err change(const struct wpk_command_context *context, struct wpk_show_options *options,
                      const char *verb, const char *name, struct wpk_diag *diag)
{
    static const char *const verbs[] = {"drain", "quarantine", "resume", NULL};
    static const char *const members[] = {"name", "order", "reason", NULL};
    char path[64];

    if (wpk_show_verb(verb, verbs, diag) < 0) {
        return WPK_EINVAL;
    }
    snprintf(path, sizeof(path), "/v1/workers:%s", verb);
    return wpk_show_order(context, options, path, name, members, diag);
}

enum wpk_exit wpk_command_workers(struct wpk_invocation *call)
{
    struct wpk_show_options show = {.max = WPK_SHOW_MAX_DEFAULT,
                                    .session = {.need = WPK_SESSION_RUNNING}};
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show),
        WPK_ARGS_TEXT("reason", "TEXT", "why, for those who look at it later", &show.reason),
        WPK_ARGS_END,
    };
    wpk_err err = WPK_OK;

    if (!wpk_command_begin(call, options, 0, 2)) {
        return call->status;
    }
    if (call->args.operand_count == 1) {
        err = wpk_fail(&call->diag, WPK_EINVAL,
                       "workers %s takes the name of a worker; wpkctl workers lists them",
                       call->args.operands[0]);
    } else if (call->args.operand_count == 2) {
        err = change(call->context, &show, call->args.operands[0], call->args.operands[1],
                     &call->diag);
    } else {
        err = wpk_show_list(call->context, &show, &workers_show, "", &call->diag);
    }
    return wpk_command_end(call, err);
}
