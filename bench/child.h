/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's end of a peer: a child process that runs only while it is asked something. */
#ifndef WPK_BENCH_CHILD_H
#define WPK_BENCH_CHILD_H

#include "bench/peer.h"

#include <sys/types.h>

/* = {0} is a child that was not started. Stopped by SIGSTOP whenever no request is under way. */
struct bench_child {
    char program[BENCH_PATH_MAX];
    int threads; /* CPUs that it may use */
    pid_t pid;   /* 0: not running */
    int fd;
    char version[BENCH_TEXT_MAX];
};

/* Start the program on `threads` CPUs, the last ones of those that this process may use (the
 * first one of a machine tends to take its interrupts), and ask its version.
 *
 *   errors  WPK_ENOENT  no such program; WPK_ERANGE  fewer CPUs than threads; WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err bench_child_start(struct bench_child *child, const char *program,
                                         int threads, struct wpk_diag *diag);

/* Wake the child, ask, and put it to sleep again.
 *
 *   errors  WPK_ECLOSED    it died; it has been reaped and is not running any more
 *           WPK_ETIMEDOUT  no answer in two minutes; it has been killed
 *           what the child answered, with its text in `diag`
 */
WPK_MUST_CHECK wpk_err bench_child_ask(struct bench_child *child,
                                       const struct bench_request *request,
                                       struct bench_reply *reply, struct wpk_diag *diag);

/* Kill it, if it runs. */
void bench_child_stop(struct bench_child *child);

#endif
