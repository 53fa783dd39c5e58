/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void print_number(struct wpk_buf *out, const char *name, const char *type, const char *help,
                         double number)
{
    wpk_buf_printf(out, "# HELP %s %s.\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name,
                   number);
}

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found = file != NULL && fgets(line, (int)size, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* Seconds since 1970 at which the machine started: not from /proc/stat, which a service may not be
 * shown. */
static double boot_time(void)
{
    struct timespec up = {0};
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &up);
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9;
}

/* The fields after the program's name, which may hold anything. */
static void print_stat(struct wpk_buf *out)
{
    char line[1024];
    uint64_t user = 0;
    uint64_t kernel = 0;
    uint64_t start = 0;
    uint64_t virtual_bytes = 0;
    int64_t pages = 0;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    const char *after = read_line("/proc/self/stat", line, sizeof line) ? strrchr(line, ')') : NULL;
    if (after == NULL || sscanf(after + 1,
                                " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                                " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %" SCNd64,
                                &user, &kernel, &start, &virtual_bytes, &pages) != 5) {
        return;
    }
    print_number(out, "process_cpu_seconds_total", "counter", "User and system time",
                 (double)(user + kernel) / ticks);
    print_number(out, "process_resident_memory_bytes", "gauge", "Resident memory",
                 (double)pages * (double)sysconf(_SC_PAGESIZE));
    print_number(out, "process_virtual_memory_bytes", "gauge", "Virtual memory",
                 (double)virtual_bytes);
    print_number(out, "process_start_time_seconds", "gauge", "Start, since 1970",
                 boot_time() + (double)start / ticks);
}

static void print_descriptors(struct wpk_buf *out)
{
    struct rlimit limit;
    DIR *directory = opendir("/proc/self/fd");
    if (directory != NULL) {
        double count = -1; /* the directory's own */
        for (const struct dirent *entry = readdir(directory); entry != NULL;
             entry = readdir(directory)) {
            count += entry->d_name[0] != '.';
        }
        closedir(directory);
        print_number(out, "process_open_fds", "gauge", "Open file descriptors", count);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        print_number(out, "process_max_fds", "gauge", "File descriptors it may open",
                     (double)limit.rlim_cur);
    }
}

void wpk_metrics_print_process(struct wpk_buf *out)
{
    WPK_ASSERT(out != NULL);
    print_stat(out);
    print_descriptors(out);
}
