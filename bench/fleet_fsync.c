/* SPDX-License-Identifier: Apache-2.0 */
/* Defines fsync and fdatasync as a slow disk performs them. SQLite's calls are linked to these, not
 * to the C library's. */
#include "bench/fleet_fsync.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int delay_ms;
static atomic_ulong call_count;

void bench_fsync_delay(int ms)
{
    atomic_store(&delay_ms, ms);
}

unsigned long bench_fsync_count(void)
{
    return atomic_load(&call_count);
}

static void wait_for_the_disk(void)
{
    struct timespec time = {.tv_nsec = (long)atomic_load(&delay_ms) * 1000000};
    atomic_fetch_add(&call_count, 1);
    if (time.tv_nsec > 0) {
        nanosleep(&time, NULL);
    }
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    wait_for_the_disk();
    return (int)syscall(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    wait_for_the_disk();
    return (int)syscall(SYS_fdatasync, fd);
}
