/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl workers: list workers; set the admin state of one. */
#include "client/show.h"

#include <inttypes.h>
#include <stdio.h>

/* The class, and of a GPU what is not in it.   errors  NULL: memory ran out */
static const char *describe_device(const struct wpk_api_worker *worker, struct wpk_arena *arena)
{
    char text[512];

    if (worker->driver[0] == '\0') {
        return worker->device;
    }
    snprintf(text, sizeof(text), "%s, %" PRId64 " MiB, driver %s", worker->device,
             worker->memory_bytes >> 20, worker->driver);
    return wpk_arena_copy_text(arena, text);
}

static wpk_err fill_workers(const void *user, const struct wpk_buf *body, struct wpk_arena *arena,
                            struct wpk_text_table *table, struct wpk_diag *diag)
{
    struct wpk_api_worker *workers;
    int count;

    (void)user;
    wpk_err err = wpk_api_decode_workers(body, arena, &workers, &count, diag);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        char running[24];
        char heard[WPK_FORMAT_SIZE];
        const char *device = describe_device(&workers[i], arena);
        if (device == NULL) {
            return WPK_ENOMEM;
        }
        snprintf(running, sizeof(running), "%" PRId64, workers[i].running);
        wpk_format_seconds(workers[i].heard_seconds_ago, heard);
        wpk_text_table_add(table, (const char *const[]){workers[i].name, workers[i].state, device,
                                                        workers[i].providers, workers[i].missing,
                                                        running, heard, workers[i].reason});
    }
    return err;
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
