/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of frames between two threads of one process, in place of a network. The receiver takes
 * waiting frames together. */
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
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t filled;
    struct bench_frame *frames; /* owned; [count] */
    uint32_t count;
    uint32_t capacity;
    bool woken; /* end the next wait although there is no frame */
    bool closed;
};

void bench_link_init(struct bench_link *link);
void bench_link_fini(struct bench_link *link);
/* Append a frame; takes its data. */
void bench_link_put(struct bench_link *link, uint32_t worker, struct wpk_buf data);
/* End the receiver's wait. */
void bench_link_wake(struct bench_link *link);
void bench_link_close(struct bench_link *link);
/* Wait up to `ms` for frames and take up to `max` of them; return false once the link is closed.
 *   shape   out [max], *count of them filled
 *   owns    caller frees the frames' data */
WPK_MUST_CHECK bool bench_link_take(struct bench_link *link, int ms, uint32_t max,
                                    struct bench_frame *out, uint32_t *count);

#endif
