/* SPDX-License-Identifier: Apache-2.0 */
/* A wpkd of one's own, asked over its Unix sockets. What goes wrong ends the program. */
#ifndef WPK_BENCH_FLEET_WPKD_H
#define WPK_BENCH_FLEET_WPKD_H

#include "common/buf.h"

#include <sys/types.h>

struct bench_wpkd {
    pid_t pid;
    char http[108];
    char workers[128]; /* URL */
};

/* Start the wpkd that lies beside this program, on `data`, which has to have a short path. */
void bench_wpkd_start(struct bench_wpkd *wpkd, const char *data);
/* One request; its status, or 0 when nobody answers. `body` and `answer` may be NULL. */
int bench_wpkd_ask(const struct bench_wpkd *wpkd, const char *method, const char *path,
                   const char *body, struct wpk_buf *answer);
/* Ask until the answer is 200. */
void bench_wpkd_await(const struct bench_wpkd *wpkd, const char *path);
/* CPU seconds so far, and resident MiB. */
void bench_wpkd_usage(const struct bench_wpkd *wpkd, double *cpu_s, double *rss_mib);
void bench_wpkd_stop(struct bench_wpkd *wpkd);

#endif
