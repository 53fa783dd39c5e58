/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a parallel loop with the caller.
 *
 * Kernels last 50 to 500 us and follow each other. A thread without work spins for a while before
 * it sleeps, because waking a sleeping thread costs 5 to 50 us. Each thread is pinned to a CPU of
 * its own among those that the caller may use: a woken thread would otherwise often start on the
 * CPU of the thread that woke it, and wait. If there are fewer CPUs than threads, no thread is
 * pinned and none spins: a spinning thread would keep others from working. The caller's own
 * affinity is never changed.
 *
 * The pool runs one loop at a time. A caller runs a loop inside another loop serially. */
#ifndef WPK_RUNTIME_POOL_H
#define WPK_RUNTIME_POOL_H

#include "common/err.h"

#define WPK_POOL_THREADS_MAX 256

struct wpk_pool;

/* Run one thread's part of a loop; the body itself divides the work. `thread` is 0 for the caller
 * and distinct, from 1 to thread_count - 1, for the pool's threads. */
typedef void (*wpk_pool_body)(void *user, size_t thread);

/* Start `thread_count` - 1 threads.
 *
 *   shape   cpus [thread_count]: cpus[0] is the caller's CPU; the caller pins itself. NULL: the
 *           pool chooses CPUs of the caller's mask, and never the one that the caller runs on
 *   owns    caller calls wpk_pool_free, while no loop runs
 *   errors  WPK_ENOMEM, WPK_ESYSTEM a thread could not be started
 */
wpk_err wpk_pool_new(int thread_count, const int *cpus, struct wpk_pool **out);
void wpk_pool_free(struct wpk_pool *pool);

/* Run `body` on the caller and on every thread that starts before the caller's part is done. Return
 * when all of them have finished. The caller may be the only one. */
void wpk_pool_run(struct wpk_pool *pool, wpk_pool_body body, void *user);

#endif
