/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a wpkd for a benchmark and sends it requests over its Unix sockets. Every failure ends the
 * program. */
#ifndef WPK_BENCH_FLEET_WPKD_H
#define WPK_BENCH_FLEET_WPKD_H

#include "common/buf.h"

#include <sys/types.h>

struct bench_wpkd {
    pid_t pid;
    char http[108];    /* path of the clients' socket */
    char workers[128]; /* URL of the workers' socket */
};

/* Start the wpkd of this build on the directory `data`. The path of `data` must be short, because
 * sockets lie in it. `log`: the URI of its log's PostgreSQL; NULL: it has none. */
void bench_wpkd_start(struct bench_wpkd *wpkd, const char *data, const char *log);
/* Send one request; return the status, or 0 if wpkd does not answer. `answer` gets head and body.
 * `body` and `answer` may be NULL. */
int bench_wpkd_ask(const struct bench_wpkd *wpkd, const char *method, const char *path,
                   const char *body, struct wpk_buf *answer);
/* Repeat the GET until its status is 200. */
void bench_wpkd_await(const struct bench_wpkd *wpkd, const char *path);
/* CPU seconds that wpkd has used so far, and its resident memory in MiB. */
void bench_wpkd_usage(const struct bench_wpkd *wpkd, double *cpu_s, double *rss_mib);
void bench_wpkd_stop(struct bench_wpkd *wpkd);

#endif
