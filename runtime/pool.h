/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a parallel loop with the caller.
 *
 * Kernels last 50 to 500 us and follow each other: a thread that has nothing to do spins for a
 * moment, because waking a sleeping one costs 5 to 50 us, and then sleeps. Each thread is pinned to
 * a CPU of its own among those that the caller may use: a woken thread would otherwise often start
 * on the CPU of the thread that woke it, and wait for it. Where there are fewer CPUs than threads
 * none is pinned and none spins: it would only keep the others from working. The caller's own
 * affinity is never changed.
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
 *   shape   cpus [thread_count], where cpus[0] is the caller's, who pins itself; NULL: they are
 *           chosen from the caller's mask, and keep off the CPU that the caller runs on
 *   owns    caller calls wpk_pool_free; no loop runs then
 *   errors  WPK_ENOMEM, WPK_ESYSTEM a thread could not be started
 */
WPK_MUST_CHECK wpk_err wpk_pool_new(int thread_count, const int *cpus, struct wpk_pool **out);
void wpk_pool_free(struct wpk_pool *pool);

/* Run `body` on the caller and on every thread that comes in time; returns when all that came have
 * left. The caller alone may have to do it all. */
void wpk_pool_run(struct wpk_pool *pool, wpk_pool_body body, void *user);

#endif
