/* SPDX-License-Identifier: Apache-2.0 */
/* How long a cold wpkd takes until it is ready, and how much memory it has then. */
#include "bench/fleet_wpkd.h"
#include "bench/usage.h"
#include "common/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 5

static const char usage[] =
    "usage: bench-restart DIR\n"
    "  how long wpkd takes to be ready; DIR: a history by bench-fleet --fill --jobs 100\n";

/* What the kernel keeps of the file goes: the first reads are the disk's. */
static void forget_pages(const char *data)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/history.db", data);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fdatasync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

int main(int argc, char **argv)
{
    bench_usage_help(argc, argv, usage);
    if (argc != 2 || argv[1][0] == '-') {
        fputs(usage, stderr);
        return 2;
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct bench_wpkd wpkd;
        double cpu_s;
        double rss_mib;
        forget_pages(argv[1]);
        uint64_t began_ns = wpk_clock_now_ns(wpk_clock_system());
        bench_wpkd_start(&wpkd, argv[1]);
        bench_wpkd_await(&wpkd, "/readyz");
        uint64_t ready_ns = wpk_clock_now_ns(wpk_clock_system()) - began_ns;
        bench_wpkd_usage(&wpkd, &cpu_s, &rss_mib);
        printf("ready after %.3f s; %.2f s of CPU, %.0f MiB resident\n", (double)ready_ns / 1e9,
               cpu_s, rss_mib);
        bench_wpkd_stop(&wpkd);
    }
    return 0;
}
