/* SPDX-License-Identifier: Apache-2.0 */
/* The measured peak of one core: the roof of rooflines and of "share of peak". */
#ifndef WPK_COMMON_PEAK_H
#define WPK_COMMON_PEAK_H

#include "common/err.h"

struct wpk_peak {
    double flops_per_s; /* f32 multiply-adds of one core, each counted 2 */
    double bytes_per_s; /* one core reading memory, far beyond its caches */
    int lanes;          /* f32 lanes of the vectors used: 16, 8 or 4 */
    bool fma;           /* false: a multiply and an add instead */
    const char *name;   /* "AVX-512", "AVX2", "SSE2"; static */
};

/* Measure on the calling thread, for about half a second. The result is the best of several short
 * stretches, because other work on the machine can only slow a stretch down.
 *
 *   owns    allocates 256 MiB for the bandwidth while it runs
 *   errors  WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_peak_measure(struct wpk_peak *out);

#endif
