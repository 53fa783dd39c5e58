/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's caches: evict memory from them, or read it into them. For measurements. */
#ifndef WPK_COMMON_MACHINE_H
#define WPK_COMMON_MACHINE_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

/* The size of the data cache of `level`, 1 to 3, that `cpu` uses, in bytes; 0: unknown.
 *   source  sysfs, whose sizes are those of one cache; else sysconf, which on some machines adds up
 *           all caches of a level */
int64_t wpk_caches_size(int cpu, int level);

/* Evict the lines of `data` from the caches of all cores; changed lines are written back. Returns
 * the number of lines. */
size_t wpk_caches_flush(const void *data, size_t size);

/* Read twice the last-level cache's size on each CPU that this thread may use, which evicts the
 * caches' content. The memory is kept for the next call. One thread at a time may call this.
 *
 *   errors  WPK_ENOMEM, WPK_ESYSTEM
 */
wpk_err wpk_caches_stream(void);

/* Read each cache line of `data` into the caches. */
void wpk_caches_read(const void *data, size_t size);

/* The measured peak of one core: the roof of rooflines and of "share of peak". */

struct wpk_peak {
    double flops_per_s; /* f32 multiply-adds of one core, each counted 2 */
    double bytes_per_s; /* one core reading memory, far beyond its caches */
    int lanes;          /* f32 lanes of the vectors used: 16, 8 or 4 */
    bool fma;           /* false: a multiply and an add instead */
    const char *name;   /* "AVX-512", "AVX2", "SSE2"; static */
};

/* Measure on the calling thread, for about a tenth of a second. The result is the best of several
 * short stretches, because other work on the machine can only slow a stretch down.
 *
 *   owns    allocates up to 256 MiB for the bandwidth while it runs
 *   errors  WPK_ENOMEM
 */
wpk_err wpk_peak_measure(struct wpk_peak *out);

/* Limits of the process that its user may have set lower than it needs. */

#define WPK_LIMITS_STACK ((size_t)8 << 20)
#define WPK_LIMITS_STACK_MIN ((size_t)1 << 20)

/* Give the process, its threads and its children a stack of WPK_LIMITS_STACK bytes, if the hard
 * limit permits it: programs of operators lie on it. If the soft limit is raised, the program is
 * started again, because threads take the limit that the start found. To be called first in main.
 *
 *   errors  WPK_ESYSTEM  less than WPK_LIMITS_STACK_MIN is possible
 */
wpk_err wpk_limits_raise_stack(char **argv, struct wpk_diag *diag);

/* Count the descriptors that the process has open, and read how many it may have. To count takes a
 * descriptor: where none is left, or /proc cannot be read, *count is *max. */
void wpk_limits_descriptors(uint64_t *count, uint64_t *max);

#endif
