/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a job until it ends and shows its progress on standard error. */
#ifndef WPK_CLIENT_FOLLOW_H
#define WPK_CLIENT_FOLLOW_H

#include "client/session.h"
#include "common/err.h"
#include "schema/job.h"

#include <stdint.h>

struct wpk_follow_options {
    const char *id;
    bool cancel;       /* Ctrl-C cancels the job; false: Ctrl-C only ends the watching */
    uint64_t until_ns; /* of the system's clock: then it is cancelled, too; 0: never */
    bool quiet;        /* no progress */
    bool own_worker;   /* a worker was started just now, for this job */
};

/* Remember the first Ctrl-C or SIGTERM instead of ending; a second one ends the process. Call this
 * before anything is started that has to be stopped. */
void wpk_follow_catch_signals(void);
/* True after such a signal. */
bool wpk_follow_interrupted(void);
/* Forget it, and remember the next one. */
void wpk_follow_go_on(void);

/* Follow the job and tend a private service meanwhile. If wpkd cannot be reached any more, ask it
 * again for WPK_PATIENCE_S; a private one is started again.
 *
 *   owns    `out` is in the arena, `reply` the last answer; the caller frees both
 *   errors  those of wpk_session_ask_job and wpk_session_tend. Ctrl-C is not an error: call
 *           wpk_follow_interrupted()
 */
wpk_err wpk_follow(struct wpk_session *session, const struct wpk_follow_options *options,
                   struct wpk_arena *arena, struct wpk_http_reply *reply, struct wpk_api_job *out,
                   struct wpk_diag *diag);

/* Submit the job, and follow it; the options' id is not read.
 *   owns, errors  as wpk_follow, and those of wpk_job_encode and wpk_session_submit */
wpk_err wpk_follow_submit(struct wpk_session *session, const struct wpk_job *job,
                          const struct wpk_follow_options *options, struct wpk_arena *arena,
                          struct wpk_http_reply *reply, struct wpk_api_job *out,
                          struct wpk_diag *diag);

/* Print to standard error that the job has failed or was cancelled, and what the user can do. */
void wpk_follow_complain(const struct wpk_api_job *job);

/* Append the progress of a job as one line of at most `width` characters (0: any), without newline.
 * The least important parts are left out first. `starting`: a worker of our own is being started,
 * so the line gives no reason for waiting. */
void wpk_follow_print(const struct wpk_api_job *job, bool starting, int width, struct wpk_buf *out);

/* Seconds until the last trial of every operator has ended, at the pace so far; -1: nothing was
 * measured yet. The time of finals is not included. */
int64_t wpk_follow_estimate(const struct wpk_api_job *job);

/* Pauses between attempts to reach a wpkd. A restart of wpkd takes seconds. */

#define WPK_PATIENCE_FIRST_MS 250
#define WPK_PATIENCE_LONGEST_MS 5000
#define WPK_PATIENCE_S 120 /* in all, since the first failure */

/* `= {0}`: wpkd has just answered. */
struct wpk_patience {
    uint64_t lost_ns; /* time of the first failure; 0: none since the last answer */
    uint32_t pause_ms;
};

/* True for failures that a later attempt may not have: WPK_ECLOSED, WPK_ETIMEDOUT, WPK_EBUSY. */
bool wpk_patience_lost(wpk_err err);

/* Pause, longer each time; a signal ends the pause. Return false at once after WPK_PATIENCE_S. */
bool wpk_patience_wait(struct wpk_patience *patience);

#endif
