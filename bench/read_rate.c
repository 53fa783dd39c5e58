/* SPDX-License-Identifier: Apache-2.0 */
/* Print the rate at which a core reads so many bytes from memory, in GB/s: in one stream or in
 * four, whichever is faster, the median of nine passes. For bench/weights.py. */
#include "bench/usage.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PASSES 9
#define LANES 4

typedef uint32_t vector __attribute__((vector_size(LANES * 4)));

static const char usage[] =
    "usage: bench-read-rate [BYTES]\n"
    "  the rate at which a core reads so many bytes, 320 MiB, from memory, in GB/s\n";

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sum the vectors in so many streams beside each other. */
static uint32_t sum(const vector *data, size_t count, size_t streams)
{
    vector all[4] = {{0}};
    size_t part = count / streams;
    for (size_t i = 0; i + 1 < part; i += 2) {
        for (size_t s = 0; s < streams; s++) {
            all[s] += data[s * part + i] + data[s * part + i + 1];
        }
    }
    const vector total = all[0] + all[1] + all[2] + all[3];
    return total[0] + total[1] + total[2] + total[3];
}

int main(int argc, char **argv)
{
    bench_usage_help(argc, argv, usage);
    size_t size = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)320 << 20;
    if (argc > 2 || size < 4096) {
        fputs(usage, stderr);
        return 2;
    }
    vector *data = aligned_alloc(2 << 20, (size + (2 << 20) - 1) / (2 << 20) * (2 << 20));
    double best = 0;
    if (data == NULL) {
        fprintf(stderr, "read_rate: memory ran out\n");
        return 1;
    }
    (void)madvise(data, size, MADV_HUGEPAGE);
    memset(data, 1, size);
    for (size_t streams = 1; streams <= 4; streams *= 4) {
        double took[PASSES];
        for (int i = 0; i < PASSES; i++) {
            double begin = seconds();
            uint32_t seen = sum(data, size / sizeof(*data), streams);
            __asm__ volatile("" : : "r"(seen)); /* it is wanted */
            took[i] = seconds() - begin;
        }
        qsort(took, PASSES, sizeof(took[0]), compare);
        double rate = (double)size / took[PASSES / 2] * 1e-9;
        best = rate > best ? rate : best;
    }
    printf("%.2f\n", best);
    free(data);
    return 0;
}
