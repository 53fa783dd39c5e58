/* SPDX-License-Identifier: Apache-2.0 */
/* A wpkd and a worker of the user's own, over local sockets, for as long as a command needs them.
 *
 * Of all commands on one data directory, one owns the processes: it holds the lock, starts them,
 * and starts them anew when they die. The others attach to what the owner wrote into `endpoint`.
 * When the owner leaves, one of the others takes its place; everything recorded is in the data
 * directory, so that a search goes on from there. Processes die with their owner, even by kill -9.
 *
 *      open ──▶ lock free? ──yes──▶ owner: start, tend ──▶ close: stop
 *                   │ no                  ▲
 *                   ▼                     │ owner gone (tend)
 *                attached ────────────────┘
 */
#ifndef WPK_CLIENT_PRIVATE_H
#define WPK_CLIENT_PRIVATE_H

#include "common/err.h"

#define WPK_PRIVATE_RESTARTS_MAX 5 /* of each process that was killed, within one command */
#define WPK_PRIVATE_FAILURES_MAX 2 /* likewise, of one that ended by itself */

struct wpk_private;

struct wpk_private_options {
    const char *data_dir;    /* made if it is not there, unless something is only read */
    const char *runtime_dir; /* where sockets may lie, NULL: /tmp; a directory is made in it */
    bool with_worker;
    bool attach_only; /* start nothing: WPK_ECLOSED when none runs */
    bool reads_only;  /* make no history: WPK_ENOENT where there is none */
    void (*notice)(const char *text, void *user); /* a process was started again; may be NULL */
    void *user;
};

/* Attach or start; returns when wpkd answers.
 *
 *   owns    caller closes; `options` is copied, its strings are borrowed
 *   errors  WPK_EBUSY another wpkd works on this data directory and cannot be reached;
 *           WPK_ECLOSED a process ended at once (its last words in `diag`) or is not beside
 *           wpkctl; WPK_EINVAL not a directory; WPK_ENOENT no history, where one is only read;
 *           WPK_ETIMEDOUT, WPK_EACCES, WPK_ENOSPC, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_private_open(const struct wpk_private_options *options,
                                        struct wpk_private **out, struct wpk_diag *diag);

/* Stop what was started and wait for it; accepts NULL. */
void wpk_private_close(struct wpk_private *private_service);

/* For wpk_http_open; changes when the ownership does: ask again after tend. */
const char *wpk_private_url(const struct wpk_private *private_service);
bool wpk_private_is_owner(const struct wpk_private *private_service);

/* Look after the processes: start the dead ones, take over from an owner that has gone. To be
 * called every second or so; quick when all is well. *changed: the URL is another one now.
 *
 *   errors  as above, and WPK_EEXHAUSTED after so many restarts
 */
WPK_MUST_CHECK wpk_err wpk_private_tend(struct wpk_private *private_service, bool *changed,
                                        struct wpk_diag *diag);

#endif
