/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/counters.h"

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define L1D_READ_MISS                                                                              \
    (PERF_COUNT_HW_CACHE_L1D | (PERF_COUNT_HW_CACHE_OP_READ << 8) |                                \
     (PERF_COUNT_HW_CACHE_RESULT_MISS << 16))

static const struct {
    uint32_t type;
    uint64_t config;
} events[] = {
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {PERF_TYPE_HW_CACHE, L1D_READ_MISS},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
};
#define EVENT_COUNT ((int)(sizeof(events) / sizeof(events[0])))

static int open_event(int index)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = events[index].type;
    attr.config = events[index].config;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The count of one call, extrapolated where counters took turns; 0 where there is none. */
static double read_event(int fd, int repeat)
{
    struct {
        uint64_t value, enabled, running;
    } now;
    if (fd < 0 || read(fd, &now, sizeof(now)) != (ssize_t)sizeof(now) || now.running == 0) {
        return 0;
    }
    return (double)now.value * ((double)now.enabled / (double)now.running) / repeat;
}

wpk_err wpk_counters_read(wpk_err (*run)(void *user), void *user, int repeat,
                          struct wpk_counters *out)
{
    WPK_ASSERT(repeat > 0);
    int fds[EVENT_COUNT];
    *out = (struct wpk_counters){0};
    for (int i = 0; i < EVENT_COUNT; i++) {
        fds[i] = open_event(i);
    }
    wpk_err err = WPK_OK;
    if (fds[0] >= 0) {
        for (int i = 0; i < EVENT_COUNT; i++) {
            if (fds[i] >= 0) {
                ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
            }
        }
        for (int i = 0; i < repeat && err == WPK_OK; i++) {
            err = run(user);
        }
        double count[EVENT_COUNT];
        for (int i = 0; i < EVENT_COUNT; i++) {
            count[i] = read_event(fds[i], repeat);
        }
        *out = (struct wpk_counters){.present = count[0] > 0,
                                     .cycles = count[0],
                                     .instructions = count[1],
                                     .l1d_misses = count[2],
                                     .llc_misses = count[3]};
    }
    for (int i = 0; i < EVENT_COUNT; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return err;
}
