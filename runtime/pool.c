/* SPDX-License-Identifier: Apache-2.0 */
/* One loop at a time, opened and closed by the caller.
 *
 *      caller                               thread
 *      write body, user                     wait until ticket changes
 *      ticket + 1 (odd: open) ────────────▶ inside + 1
 *      run body                             ticket still the same? run body : nothing
 *      ticket + 1 (even: closed)            inside - 1
 *      wait until inside is 0 ◀────────────
 *
 * A thread that comes late finds the ticket moved on and touches nothing: it counts itself in
 * before it looks, and the caller closes before it looks at the count; both in one total order
 * (seq_cst), so one of them sees the other. */
#include "runtime/pool.h"

#include "common/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS 60000      /* between two kernels of a model, and at the end of an uneven loop */
#define PAUSES_PER_LOOK 64 /* the clock is read once in so many pauses */

struct pool_thread {
    struct wpk_pool *pool;
    pthread_t id;
    int index;
};

struct wpk_pool {
    bool may_spin;
    struct pool_thread *threads; /* [thread_count - 1] */
    int started;
    bool follows;       /* threads keep off the caller's CPU */
    int *cpu;           /* [thread_count] where each thread is, the caller first; -1: anywhere */
    wpk_pool_body body; /* written while closed, read while open */
    void *user;
    alignas(64) atomic_int ticket; /* odd: a loop is open */
    atomic_int sleepers;           /* threads that may wait for the ticket in the kernel */
    atomic_bool stopping;
    alignas(64) atomic_int inside;
    atomic_bool caller_sleeps;
};

static void futex_wait(atomic_int *word, int value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_int *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Spin until `word` is no longer `value`; false when it took too long. */
static bool spin_while(const struct wpk_pool *pool, atomic_int *word, int value)
{
    uint64_t deadline = 0;

    if (!pool->may_spin) {
        return atomic_load(word) != value;
    }
    for (;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) {
                return true;
            }
            __builtin_ia32_pause();
        }
        uint64_t now = wpk_clock_ns();
        if (deadline == 0) {
            deadline = now + SPIN_NS;
        } else if (now > deadline) {
            return false;
        }
    }
}

static void *thread_main(void *argument)
{
    struct pool_thread *self = argument;
    struct wpk_pool *pool = self->pool;
    int seen = 0;

    for (;;) {
        if (!spin_while(pool, &pool->ticket, seen)) {
            atomic_fetch_add(&pool->sleepers, 1);
            while (atomic_load(&pool->ticket) == seen) {
                futex_wait(&pool->ticket, seen);
            }
            atomic_fetch_sub(&pool->sleepers, 1);
        }
        seen = atomic_load(&pool->ticket);
        if (atomic_load(&pool->stopping)) {
            return NULL;
        }
        if (seen % 2 == 0) {
            continue;
        }
        atomic_fetch_add(&pool->inside, 1);
        if (atomic_load(&pool->ticket) == seen) {
            pool->body(pool->user, (size_t)self->index);
        }
        if (atomic_fetch_sub(&pool->inside, 1) == 1 && atomic_load(&pool->caller_sleeps)) {
            futex_wake(&pool->inside);
        }
    }
}

/* As a caller sees it: the ticket moves, and whoever sleeps is woken. It wraps around after 2^31
 * loops, unsigned inside the processor; equality is all that is asked of it. */
static void move_ticket(struct wpk_pool *pool, bool wake)
{
    atomic_fetch_add(&pool->ticket, 1);
    if (wake && atomic_load(&pool->sleepers) > 0) {
        futex_wake(&pool->ticket);
    }
}

static bool pin(pthread_t thread, int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return pthread_setaffinity_np(thread, sizeof(set), &set) == 0;
}

void wpk_pool_run(struct wpk_pool *pool, wpk_pool_body body, void *user)
{
    if (pool->follows) {
        /* The caller is not pinned. Where it has moved to the CPU of one of the threads, that
         * thread goes to where the caller was. */
        int here = sched_getcpu();
        for (int i = 1; i <= pool->started && here >= 0 && here != pool->cpu[0]; i++) {
            if (pool->cpu[i] == here && pin(pool->threads[i - 1].id, pool->cpu[0])) {
                pool->cpu[i] = pool->cpu[0];
                break;
            }
        }
        pool->cpu[0] = here;
    }
    pool->body = body;
    pool->user = user;
    move_ticket(pool, true);
    body(user, 0);
    move_ticket(pool, false);

    int inside = atomic_load(&pool->inside);
    while (inside != 0) {
        if (!spin_while(pool, &pool->inside, inside)) {
            atomic_store(&pool->caller_sleeps, true);
            inside = atomic_load(&pool->inside);
            if (inside != 0) {
                futex_wait(&pool->inside, inside);
            }
            atomic_store(&pool->caller_sleeps, false);
        }
        inside = atomic_load(&pool->inside);
    }
}

static wpk_err start_thread(struct wpk_pool *pool, int index)
{
    struct pool_thread *thread = &pool->threads[index - 1];

    thread->pool = pool;
    thread->index = index;
    if (pthread_create(&thread->id, NULL, thread_main, thread) != 0) {
        return WPK_ESYSTEM;
    }
    pool->started++;
    bool pinned = pool->cpu[index] < 0 || pin(thread->id, pool->cpu[index]);
    return pinned || pool->follows ? WPK_OK : WPK_ESYSTEM;
}

/* The first CPU of the core that the CPU is of: equal for hardware threads that share a core. */
static int core_of(int cpu)
{
    char path[96];
    int first = cpu;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &first) != 1) {
            first = cpu;
        }
        fclose(file);
    }
    return first;
}

/* True if the CPU, or with `whole_core` one of its core, is among the first `count` chosen ones. */
static bool is_taken(const int *chosen, int count, int cpu, bool whole_core)
{
    for (int i = 0; i < count; i++) {
        if (chosen[i] == cpu || (whole_core && core_of(chosen[i]) == core_of(cpu))) {
            return true;
        }
    }
    return false;
}

/* One CPU of the caller's mask for each thread, the caller's own first; cores before the second
 * hardware thread of any. -1 where there are fewer: those threads share what there is. */
static bool choose_cpus(int thread_count, int *out)
{
    int here = sched_getcpu(), count = 1;
    cpu_set_t mask;

    for (int i = 0; i < thread_count; i++) {
        out[i] = -1;
    }
    if (here < 0 || sched_getaffinity(0, sizeof(mask), &mask) != 0 ||
        CPU_COUNT(&mask) < thread_count) {
        return false;
    }
    out[0] = here;
    for (int pass = 0; pass < 2; pass++) {
        for (int cpu = 0; cpu < CPU_SETSIZE && count < thread_count; cpu++) {
            if (CPU_ISSET((size_t)cpu, &mask) && !is_taken(out, count, cpu, pass == 0)) {
                out[count++] = cpu;
            }
        }
    }
    return count == thread_count;
}

/* A caller that was pinned to one CPU pins its threads elsewhere: then the CPUs named count. */
static bool are_distinct(int thread_count, const int *cpus)
{
    for (int i = 1; i < thread_count; i++) {
        if (is_taken(cpus, i, cpus[i], false)) {
            return false;
        }
    }
    return true;
}

wpk_err wpk_pool_new(int thread_count, const int *cpus, struct wpk_pool **out)
{
    WPK_ASSERT(thread_count >= 1);
    WPK_ASSERT(thread_count <= WPK_POOL_THREADS_MAX);
    struct wpk_pool *pool = aligned_alloc(alignof(struct wpk_pool), sizeof(*pool));
    if (pool == NULL) {
        return WPK_ENOMEM;
    }
    memset(pool, 0, sizeof(*pool));
    pool->threads = calloc((size_t)thread_count, sizeof(*pool->threads));
    pool->cpu = calloc((size_t)thread_count, sizeof(*pool->cpu));
    wpk_err err = pool->threads != NULL && pool->cpu != NULL ? WPK_OK : WPK_ENOMEM;
    if (err == WPK_OK && cpus != NULL) {
        memcpy(pool->cpu, cpus, (size_t)thread_count * sizeof(*cpus));
        pool->may_spin = are_distinct(thread_count, cpus);
    } else if (err == WPK_OK) {
        pool->follows = choose_cpus(thread_count, pool->cpu);
        pool->may_spin = pool->follows;
    }
    for (int i = 1; i < thread_count && err == WPK_OK; i++) {
        err = start_thread(pool, i);
    }
    if (err != WPK_OK) {
        wpk_pool_free(pool);
        return err;
    }
    *out = pool;
    return WPK_OK;
}

void wpk_pool_free(struct wpk_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    atomic_store(&pool->stopping, true);
    move_ticket(pool, true);
    for (int i = 0; i < pool->started; i++) {
        pthread_join(pool->threads[i].id, NULL);
    }
    free(pool->cpu);
    free(pool->threads);
    free(pool);
}
