/* SPDX-License-Identifier: Apache-2.0 */
/* One process that this one starts and outlives. */
#ifndef WPK_CLIENT_CHILD_H
#define WPK_CLIENT_CHILD_H

#include "common/buf.h"

#include <sys/types.h>

/* `= {0}` is no process. */
struct wpk_child {
    pid_t pid;  /* 0: none runs */
    int status; /* of the last that ended: its exit code, or 128 + signal */
};

/* Start `path` with its arguments (NULL-terminated, argv[0] included), in a process group of its
 * own, so that Ctrl-C reaches only us; it gets SIGTERM when we die, however that happens. Output
 * goes to `log_path`, which is begun anew.
 *
 *   errors  WPK_ENOENT no such program, WPK_ENOSPC no room for last words, WPK_EACCES, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_child_start(struct wpk_child *child, const char *path,
                                       const char *const *argv, const char *log_path,
                                       struct wpk_diag *diag);

/* Does it still run? When it does not, it has been waited for and pid is 0. */
bool wpk_child_runs(struct wpk_child *child);

/* SIGTERM; SIGKILL to its group after `grace_ms`; returns when it is gone. */
void wpk_child_stop(struct wpk_child *child, int grace_ms);

/* Wait until it ends or `give_up` says true; the exit code, 128 + signal, or -1 when given up. */
int wpk_child_wait(struct wpk_child *child, bool (*give_up)(void));

/* The last line that `log_path` holds, for a message; of a failure that was logged, its reason. */
void wpk_child_last_words(const char *log_path, char *out, size_t size);

#endif
