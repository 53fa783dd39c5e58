/* SPDX-License-Identifier: Apache-2.0 */
/* perf_event's `inherit` covers only threads that start later. The threads of a pool have started
 * already, so every existing thread gets events of its own. */
#include "worker/runner/run_batch.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define L1D_READ_MISS                                                                              \
    (PERF_COUNT_HW_CACHE_L1D | (PERF_COUNT_HW_CACHE_OP_READ << 8) |                                \
     (PERF_COUNT_HW_CACHE_RESULT_MISS << 16))

#define THREADS_MAX 128 /* descriptors are what limits it */

enum { CYCLES, INSTRUCTIONS, L1D_MISSES, LLC_MISSES, EVENT_COUNT };

static const struct wpk_counter_event hardware[EVENT_COUNT] = {
    [CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [L1D_MISSES] = {PERF_TYPE_HW_CACHE, L1D_READ_MISS},
    [LLC_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
};

_Static_assert((int)EVENT_COUNT <= WPK_COUNTER_EVENTS_MAX, "events");

/* The threads of this process; -1 when there are more than `max`. */
static int list_threads(pid_t *out, int max)
{
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL) {
        return -1;
    }
    int count = 0;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (count == max) {
            count = -1;
            break;
        }
        out[count++] = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    closedir(directory);
    return count;
}

static int open_event(const struct wpk_counter_event *event, pid_t thread)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = event->type;
    attr.config = event->config;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void close_all(int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
        fds[i] = -1;
    }
}

/* One event of every thread, or of none: a part would pass for the whole.   shape  fds [count] */
static void open_on_threads(const struct wpk_counter_event *event, const pid_t *threads, int count,
                            int *fds)
{
    for (int i = 0; i < count; i++) {
        fds[i] = -1;
    }
    for (int i = 0; i < count; i++) {
        fds[i] = open_event(event, threads[i]);
        if (fds[i] < 0 && errno != ESRCH) { /* a thread that has ended does no work */
            close_all(fds, count);
            return;
        }
    }
}

/* Extrapolated where counters took turns; 0 where nothing was counted. */
static double read_event(int fd)
{
    struct {
        uint64_t value, enabled, running;
    } now;
    if (fd < 0 || read(fd, &now, sizeof(now)) != (ssize_t)sizeof(now) || now.running == 0) {
        return 0;
    }
    return (double)now.value * ((double)now.enabled / (double)now.running);
}

wpk_err wpk_counters_sum(wpk_err (*run)(void *user), void *user, int repeat,
                         const struct wpk_counter_event *events, int count, double *out)
{
    WPK_ASSERT(repeat > 0);
    WPK_ASSERT(count > 0 && count <= WPK_COUNTER_EVENTS_MAX);
    pid_t threads[THREADS_MAX];
    int fds[WPK_COUNTER_EVENTS_MAX * THREADS_MAX];
    int thread_count = list_threads(threads, THREADS_MAX);
    thread_count = thread_count < 0 ? 0 : thread_count;
    int fd_count = count * thread_count;
    for (int i = 0; i < count; i++) {
        out[i] = 0;
        open_on_threads(&events[i], threads, thread_count, fds + i * thread_count);
    }
    for (int i = 0; i < fd_count; i++) {
        if (fds[i] >= 0) {
            ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
        }
    }
    wpk_err err = WPK_OK;
    for (int i = 0; i < repeat && err == WPK_OK; i++) {
        err = run(user);
    }
    for (int i = 0; i < fd_count; i++) {
        out[i / thread_count] += read_event(fds[i]) / repeat;
    }
    close_all(fds, fd_count);
    return err;
}

wpk_err wpk_counters_read(wpk_err (*run)(void *user), void *user, int repeat,
                          struct wpk_counters *out)
{
    *out = (struct wpk_counters){0};
    /* Without the first of them there are none, and the calls are saved. */
    int fd = open_event(&hardware[CYCLES], 0);
    if (fd < 0) {
        return WPK_OK;
    }
    close(fd);
    double mean[EVENT_COUNT];
    wpk_err err = wpk_counters_sum(run, user, repeat, hardware, EVENT_COUNT, mean);
    *out = (struct wpk_counters){.present = mean[CYCLES] > 0,
                                 .cycles = mean[CYCLES],
                                 .instructions = mean[INSTRUCTIONS],
                                 .l1d_misses = mean[L1D_MISSES],
                                 .llc_misses = mean[LLC_MISSES]};
    return err;
}
