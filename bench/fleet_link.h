/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between two threads of one process: what a network would carry. Frames that wait are taken
 * together. */
#ifndef WPK_BENCH_FLEET_LINK_H
#define WPK_BENCH_FLEET_LINK_H

#include "common/buf.h"

#include <pthread.h>
#include <stdint.h>

struct bench_frame {
    uint32_t worker;
    struct wpk_buf data; /* owned */
};

struct bench_link {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t filled;
    struct bench_frame *frames; /* owned; [count] */
    uint32_t count;
    uint32_t capacity;
    bool woken;  /* without a frame */
    bool closed;
};

void bench_link_init(struct bench_link *link);
void bench_link_fini(struct bench_link *link);
/* Takes the frame's data. */
void bench_link_put(struct bench_link *link, uint32_t worker, struct wpk_buf data);
/* End a wait. */
void bench_link_wake(struct bench_link *link);
void bench_link_close(struct bench_link *link);
/* Wait up to `ms` for frames, and take up to `max` of them; false when the link is closed. */
WPK_MUST_CHECK bool bench_link_take(struct bench_link *link, int ms, uint32_t max,
                                    struct bench_frame *out, uint32_t *count);

#endif
