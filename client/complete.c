/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl complete: print ids and names for completion in shells, one a line. The command asks a
 * wpkd that runs and starts none. After a failure it prints nothing, not even an error. */
#include "client/session.h"
#include "client/show.h"

#include <stdio.h>

#define ITEMS_MAX 200
#define SHORT_HASH 12 /* digits, as tables show them */

enum kind { JOBS, KERNELS, WORKERS, NAMES };

static const char *const kinds[] = {"jobs", "kernels", "workers", "names", NULL};

static wpk_err print_jobs(const struct wpk_buf *body, struct wpk_arena *arena, bool names)
{
    struct wpk_api_job *jobs;
    int count = 0;

    wpk_err err = wpk_api_decode_jobs(body, arena, &jobs, &count, NULL);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        if (!names) {
            puts(jobs[i].id);
        }
        for (int k = 0; names && k < jobs[i].op_count; k++) {
            puts(jobs[i].ops[k].name);
        }
    }
    return err;
}

static wpk_err print_kernels(const struct wpk_buf *body, struct wpk_arena *arena, bool names)
{
    struct wpk_api_kernel *kernels;
    int count = 0;

    wpk_err err = wpk_api_decode_kernels(body, arena, &kernels, &count, NULL);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        printf("%.*s\n", names ? SHORT_HASH : 64, names ? kernels[i].fingerprint : kernels[i].id);
    }
    return err;
}

static wpk_err print_workers(const struct wpk_buf *body, struct wpk_arena *arena)
{
    struct wpk_api_worker *workers;
    int count = 0;

    wpk_err err = wpk_api_decode_workers(body, arena, &workers, &count, NULL);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        puts(workers[i].name);
    }
    return err;
}

static wpk_err list(struct wpk_session *session, const char *key, bool names)
{
    struct wpk_buf body = {.size_max = WPK_HTTP_REPLY_MAX};
    struct wpk_arena arena = {0};
    char path[32];

    snprintf(path, sizeof(path), "/v1/%s", key);
    wpk_err err = wpk_list_fetch(session, path, "", key, ITEMS_MAX, &body, NULL);
    if (err == WPK_OK) {
        err = key == kinds[JOBS]      ? print_jobs(&body, &arena, names)
              : key == kinds[KERNELS] ? print_kernels(&body, &arena, names)
                                      : print_workers(&body, &arena);
    }
    wpk_arena_fini(&arena);
    wpk_buf_fini(&body);
    return err;
}

enum wpk_exit wpk_command_complete(struct wpk_invocation *call)
{
    struct wpk_session_options session_options = {.need = WPK_SESSION_RUNNING};
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session_options),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    int kind = wpk_show_verb(call->args.operands[0], kinds, &call->diag);
    if (kind < 0) {
        return wpk_command_fail(WPK_EINVAL, &call->diag);
    }
    wpk_err err = wpk_session_open(call->context, &session_options, &session, &call->diag);
    if (err == WPK_OK && kind == NAMES) {
        err = list(&session, kinds[JOBS], true);
    }
    if (err == WPK_OK) {
        err = list(&session, kinds[kind == NAMES ? KERNELS : kind], kind == NAMES);
    }
    wpk_session_close(&session);
    return err == WPK_OK ? WPK_EXIT_OK : WPK_EXIT_UNREACHABLE;
}
