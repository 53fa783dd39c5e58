/* SPDX-License-Identifier: Apache-2.0 */
/* Stay with a job until it ends, showing how it goes on standard error. */
#ifndef WPK_CLIENT_FOLLOW_H
#define WPK_CLIENT_FOLLOW_H

#include "client/session.h"

struct wpk_follow_options {
    const char *id;
    bool cancel;     /* Ctrl-C asks wpkd to cancel the job; without it, only the watching ends */
    bool quiet;      /* no progress */
    bool own_worker; /* one was started just now, for this job */
};

/* From here on Ctrl-C and SIGTERM are remembered instead of ending the process at once; a second
 * one ends it. To be called before anything is started that must be stopped. */
void wpk_follow_catch_signals(void);
bool wpk_follow_interrupted(void);

/* Follow the job, tending a private service meanwhile. A wpkd that was there and
 * cannot be reached any more is asked again for a while, a private one is started again.
 *
 *   owns    `out` and `reply` hold the last answer, in the arena and in the reply; the caller frees
 *   errors  of wpk_session_ask_job and wpk_session_tend; Ctrl-C is not one: ask
 *           wpk_follow_interrupted()
 */
WPK_MUST_CHECK wpk_err wpk_follow(struct wpk_session *session,
                                  const struct wpk_follow_options *options, struct wpk_arena *arena,
                                  struct wpk_http_reply *reply, struct wpk_api_job *out,
                                  struct wpk_diag *diag);

/* Say on standard error that the job has failed or was cancelled, and what to do. */
void wpk_follow_complain(const struct wpk_api_job *job);

/* The progress of a job as one line of at most `width` characters (0: any), without newline: what
 * is least important gives way. `starting`: a worker of our own is on its way, so that waiting for
 * one needs no reason. */
void wpk_follow_print(const struct wpk_api_job *job, bool starting, int width, struct wpk_buf *out);

/* Seconds until the last trial of every operator has ended, at the pace so far; -1: nothing was
 * measured yet. What the last final takes is not in it. */
int64_t wpk_follow_estimate(const struct wpk_api_job *job);

#endif
