/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's end of a peer: a child process that runs only while it has a request. */
#ifndef WPK_BENCH_CHILD_H
#define WPK_BENCH_CHILD_H

#include "bench/peer.h"

#include <sys/types.h>

/* `= {0}` is a child that was not started. SIGSTOP stops the child between requests. */
struct bench_child {
    char program[BENCH_PATH_MAX];
    int threads; /* number of CPUs that the child may use */
    pid_t pid;   /* 0: not running */
    int fd;
    char version[BENCH_TEXT_MAX];
};

/* Start the program on `threads` CPUs and ask its version. The CPUs are the last ones that this
 * process may use, because the first CPU of a machine often takes the interrupts.
 *
 *   errors  WPK_ENOENT  no such program; WPK_ERANGE  fewer CPUs than threads; WPK_ESYSTEM; those of
 *           bench_child_ask
 */
wpk_err bench_child_start(struct bench_child *child, const char *program, int threads,
                          struct wpk_diag *diag);

/* Continue the child, send the request, wait for the reply, and stop the child again.
 *
 *   errors  WPK_ECLOSED    the child died; it has been reaped
 *           WPK_ETIMEDOUT  no reply in two minutes; the child has been killed
 *           the error of the reply, with its text in `diag`
 */
wpk_err bench_child_ask(struct bench_child *child, const struct bench_request *request,
                        struct bench_reply *reply, struct wpk_diag *diag);

/* Kill and reap the child, if it runs. */
void bench_child_stop(struct bench_child *child);

#endif
