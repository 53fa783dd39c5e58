/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/fleet_link.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void bench_link_init(struct bench_link *link)
{
    memset(link, 0, sizeof *link);
    pthread_mutex_init(&link->lock, NULL);
    pthread_cond_init(&link->filled, NULL);
}

void bench_link_fini(struct bench_link *link)
{
    for (uint32_t i = 0; i < link->count; i++) {
        wpk_buf_fini(&link->frames[i].data);
    }
    free(link->frames);
    pthread_cond_destroy(&link->filled);
    pthread_mutex_destroy(&link->lock);
}

void bench_link_put(struct bench_link *link, uint32_t worker, struct wpk_buf data)
{
    pthread_mutex_lock(&link->lock);
    if (link->count == link->capacity) {
        link->capacity = link->capacity == 0 ? 4096 : link->capacity * 2;
        struct bench_frame *grown = realloc(link->frames, link->capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        link->frames = grown;
    }
    link->frames[link->count++] = (struct bench_frame){worker, data};
    pthread_cond_signal(&link->filled);
    pthread_mutex_unlock(&link->lock);
}

void bench_link_wake(struct bench_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->woken = true;
    pthread_cond_signal(&link->filled);
    pthread_mutex_unlock(&link->lock);
}

void bench_link_close(struct bench_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->closed = true;
    pthread_cond_signal(&link->filled);
    pthread_mutex_unlock(&link->lock);
}

bool bench_link_take(struct bench_link *link, int ms, uint32_t max, struct bench_frame *out,
                     uint32_t *count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&link->lock);
    int timed_out = 0;
    while (link->count == 0 && !link->woken && !link->closed && timed_out == 0) {
        timed_out = pthread_cond_timedwait(&link->filled, &link->lock, &until);
    }
    link->woken = false;
    *count = link->count < max ? link->count : max;
    if (*count > 0) {
        memcpy(out, link->frames, *count * sizeof *out);
        link->count -= *count;
        memmove(link->frames, link->frames + *count, link->count * sizeof *out);
    }
    bool open = !link->closed;
    pthread_mutex_unlock(&link->lock);
    return open;
}
