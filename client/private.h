/* SPDX-License-Identifier: Apache-2.0 */
/* A wpkd and a worker of the user's own, over local sockets, for as long as a command needs them.
 *
 * Of all commands on one data directory, one owns the processes: it holds the lock, starts them,
 * and restarts them when they die. The other commands attach to the address that the owner wrote
 * into the file `endpoint`. When the owner ends, one of the others takes its place. Everything
 * recorded is in the data directory, so a search goes on from there. Processes die with their
 * owner, even after kill -9.
 *
 *      open ──▶ lock free? ──yes──▶ owner: start, tend ──▶ close: stop
 *                   │ no                  ▲
 *                   ▼                     │ owner gone (tend)
 *                attached ────────────────┘
 */
#ifndef WPK_CLIENT_PRIVATE_H
#define WPK_CLIENT_PRIVATE_H

#include "common/err.h"

#include <sys/types.h>

struct wpk_private;

#define WPK_PRIVATE_RESTARTS_MAX 5 /* of each process that was killed, in one command */
#define WPK_PRIVATE_FAILURES_MAX 2 /* of each process that ended by itself, in one command */

struct wpk_private_options {
    const char *data_dir;    /* made if missing, unless reads_only */
    const char *runtime_dir; /* a directory for sockets is made in it; NULL: in /tmp */
    bool with_worker;
    const char *gpu;  /* that the worker serves, as its --gpu; NULL: it serves the CPU */
    bool attach_only; /* start nothing; WPK_ECLOSED if no wpkd runs */
    bool reads_only;  /* make no history; WPK_ENOENT if there is none */
    void (*notice)(const char *text, void *user); /* tells of a restart; may be NULL */
    void *user;
};

/* Attach to the processes or start them; return when wpkd answers.
 *
 *   owns    caller closes; `options` is copied, its strings are borrowed
 *   errors  WPK_EBUSY another wpkd works on this data directory and cannot be reached;
 *           WPK_ECLOSED a process ended at once (`diag` has its last log line), or its program is
 *           not beside wpkctl; WPK_EINVAL not a directory; WPK_ENOENT reads_only, and no history;
 *           WPK_ETIMEDOUT, WPK_EACCES, WPK_ENOSPC, WPK_ESYSTEM
 */
wpk_err wpk_private_open(const struct wpk_private_options *options, struct wpk_private **out,
                         struct wpk_diag *diag);

/* Stop the processes that were started and wait until they have ended; accepts NULL. */
void wpk_private_close(struct wpk_private *private_service);

/* The URL for wpk_http_open. It changes with the owner: ask again after wpk_private_tend. */
const char *wpk_private_url(const struct wpk_private *private_service);
bool wpk_private_is_owner(const struct wpk_private *private_service);

/* Restart processes that have died, and take over from an owner that has ended. Call it about every
 * second; it is quick when nothing is wrong. *changed: the URL has changed.
 *
 *   errors  those of wpk_private_open; WPK_EEXHAUSTED after the restarts above
 */
wpk_err wpk_private_tend(struct wpk_private *private_service, bool *changed, struct wpk_diag *diag);

/* A process that wpkctl starts and outlives. */

/* `= {0}` is no process. */
struct wpk_child {
    pid_t pid;  /* 0: no process runs */
    int status; /* of the last process that ended: its exit code, or 128 + signal */
};

/* Start the program argv[0], which lies beside this one; argv ends with NULL. It has a process
 * group of its own, so that Ctrl-C reaches wpkctl only. It gets SIGTERM however wpkctl dies. The
 * output goes to `log_path`, which is emptied before.
 *
 *   errors  WPK_ENOENT no such program, WPK_ENOSPC no room for the log, WPK_EACCES, WPK_ESYSTEM
 */
wpk_err wpk_child_start(struct wpk_child *child, const char *const *argv, const char *log_path,
                        struct wpk_diag *diag);

/* True while the process runs. A process that has ended is reaped, and pid becomes 0. */
bool wpk_child_runs(struct wpk_child *child);

/* Send SIGTERM, and after `grace_ms` SIGKILL to the process group; return when it has ended. */
void wpk_child_stop(struct wpk_child *child, int grace_ms);

/* Wait until the process ends or `give_up` (NULL: never) returns true. Return the exit code,
 * 128 + signal, or -1 after giving up. */
int wpk_child_wait(struct wpk_child *child, bool (*give_up)(void));

/* Sleep between looks at a child. */
void wpk_child_pause(int ms);

/* Copy the last line of `log_path`, for a message; if it logs a failure, copy its reason only. */
void wpk_child_last_words(const char *log_path, char *out, size_t size);

#endif
