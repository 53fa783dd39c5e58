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

static wpk_err print(struct wpk_session *session, const char *key, bool names)
{
    struct wpk_arena arena = {0};
    struct wpk_api_list list;

    wpk_err err = wpk_list_read(session, key, "", ITEMS_MAX, &arena, &list, NULL);
    for (int i = 0; i < list.count; i++) {
        const struct wpk_api_job *job = list.jobs != NULL ? &list.jobs[i] : NULL;
        for (int k = 0; names && job != NULL && k < job->op_count; k++) {
            puts(job->ops[k].name);
        }
        if (list.kernels != NULL) {
            printf("%.*s\n", names ? SHORT_HASH : 64,
                   names ? list.kernels[i].fingerprint : list.kernels[i].id);
        } else if (!names) {
            puts(job != NULL ? job->id : list.workers[i].name);
        }
    }
    wpk_arena_fini(&arena);
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
        err = print(&session, kinds[JOBS], true);
    }
    if (err == WPK_OK) {
        err = print(&session, kinds[kind == NAMES ? KERNELS : kind], kind == NAMES);
    }
    wpk_session_close(&session);
    return err == WPK_OK ? WPK_EXIT_OK : WPK_EXIT_UNREACHABLE;
}
