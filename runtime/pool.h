/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a parallel loop with the caller.
 *
 * Kernels last 50 to 500 us and follow each other: a thread that has nothing to do spins for a
 * moment, because waking a sleeping one costs 5 to 50 us, and then sleeps. Where there are fewer
 * CPUs than threads nobody spins: it would only keep the others from working.
 *
 * Indices are handed out by a counter, in chunks. One loop runs at a time; a loop begun inside
 * another is the caller's to run serially. */
#ifndef WPK_RUNTIME_POOL_H
#define WPK_RUNTIME_POOL_H

#include "common/err.h"
#include "runtime/abi.h"

#define WPK_POOL_THREADS_MAX 256

struct wpk_pool;

/* A thread's part of a loop: calls `next` until it says that nothing is left. `thread` is 0 for
 * the caller, else from 1 to thread_count - 1, and distinct among those that run. */
typedef void (*wpk_pool_body)(void *user, int thread);

/* Start `thread_count` - 1 threads.
 *
 *   shape   cpus [thread_count] or NULL; cpus[0] is not used
 *   owns    caller calls wpk_pool_free; no loop runs then
 *   errors  WPK_ENOMEM, WPK_ESYSTEM a thread could not be started
 */
WPK_MUST_CHECK wpk_err wpk_pool_new(int thread_count, const int *cpus, struct wpk_pool **out);
void wpk_pool_free(struct wpk_pool *pool);

/* Run `body` on the caller and on every thread that comes in time; returns when all that came have
 * left. The caller alone may have to do it all. */
void wpk_pool_run(struct wpk_pool *pool, wpk_pool_body body, void *user);

#endif
