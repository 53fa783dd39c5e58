/* SPDX-License-Identifier: Apache-2.0 */
/* bench-peak: measures the peak f32 FMA rate and the memory bandwidth of one core. */
#include "bench/usage.h"
#include "common/machine.h"

#include <stdio.h>

static const char usage[] =
    "usage: bench-peak\n"
    "  the peak f32 rate of one core and the bandwidth of memory, measured now\n";

int main(int argc, char **argv)
{
    bench_usage_help(argc, argv, usage);
    if (argc > 1) {
        fputs(usage, stderr);
        return 2;
    }
    struct wpk_peak peak;
    const wpk_err err = wpk_peak_measure(&peak);
    if (err != WPK_OK) {
        fprintf(stderr, "bench-peak: %s\n", wpk_err_text(err));
        return 1;
    }
    printf("%s%s, %d lanes: %.1f GFLOP/s per core; memory, read by one core: %.1f GB/s\n",
           peak.name, peak.fma ? " FMA" : "", peak.lanes, peak.flops_per_s / 1e9,
           peak.bytes_per_s / 1e9);
    return 0;
}
