/* SPDX-License-Identifier: Apache-2.0 */
/* A process that wpkctl starts and outlives. */
#ifndef WPK_CLIENT_CHILD_H
#define WPK_CLIENT_CHILD_H

#include "common/buf.h"

#include <sys/types.h>

/* `= {0}` is no process. */
struct wpk_child {
    pid_t pid;  /* 0: no process runs */
    int status; /* of the last process that ended: its exit code, or 128 + signal */
};

/* Start `path` with its arguments (NULL-terminated, argv[0] included). The process has a process
 * group of its own, so that Ctrl-C reaches wpkctl only. It gets SIGTERM however wpkctl dies. The
 * output goes to `log_path`, which is emptied before.
 *
 *   errors  WPK_ENOENT no such program, WPK_ENOSPC no room for the log, WPK_EACCES, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_child_start(struct wpk_child *child, const char *path,
                                       const char *const *argv, const char *log_path,
                                       struct wpk_diag *diag);

/* True while the process runs. A process that has ended is reaped, and pid becomes 0. */
bool wpk_child_runs(struct wpk_child *child);

/* Send SIGTERM, and after `grace_ms` SIGKILL to the process group; return when it has ended. */
void wpk_child_stop(struct wpk_child *child, int grace_ms);

/* Wait until the process ends or `give_up` returns true. Return the exit code, 128 + signal, or -1
 * after giving up. */
int wpk_child_wait(struct wpk_child *child, bool (*give_up)(void));

/* Copy the last line of `log_path`, for a message; if it logs a failure, copy its reason only. */
void wpk_child_last_words(const char *log_path, char *out, size_t size);

#endif
