/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a multiprocessor and rates by capability. None of these numbers was timed.
 *
 *   source  limits: CUDA Programming Guide, "Compute Capabilities".
 *           Rates, shared out among the multiprocessors, of the GPU that the row names, from
 *           NVIDIA's papers: "Tesla V100 GPU Architecture" (80 multiprocessors, 900 GB/s),
 *           "Turing GPU Architecture" (T4: 40, 320), "A100 Tensor Core GPU Architecture" (108,
 *           1555; of the second cache 5120 bytes a cycle, 2.5 times the V100's), "Ampere GA102 GPU
 *           Architecture" (RTX 3090: 82, 936), "Ada GPU Architecture" (RTX 4090: 128, 1008), "H100
 *           Tensor Core GPU Architecture" (132, 3350), "Blackwell Architecture Technical Brief"
 *           (B200: 148, 8000), "RTX Blackwell GPU Architecture" (RTX 5090: 170, 1792).
 *           The T4's second cache: Jia et al., Dissecting the NVidia Turing T4 GPU via
 *           Microbenchmarking, 2019 (1270 GB/s). Of later ones NVIDIA says nothing; they have the
 *           H100's rate, which is the A100's shared out. */
#include "common/cuda_machine.h"

#include <stddef.h>

#define KB ((int64_t)1 << 10)
#define MB (KB << 10)

#define LAUNCH_SECONDS (4000 / 1.7e9) /* hosts and drivers decide on it, not the clock */
#define LATENCY 700
#define BARRIER 40
#define L2_BYTES 40 /* where it is not known */

static const struct row {
    int capability;
    const char *name;
    int threads_max, blocks_max; /* of a multiprocessor */
    int64_t shared_max;
    double multiply_adds, l2_bytes, dram_bytes; /* in a cycle of a multiprocessor */
    int64_t l2_size;
    double hertz;
} rows[] = {
    {70, "V100", 2048, 32, 96 * KB, 64, 26, 7.4, 6 * MB, 1.53e9},
    {75, "T4", 1024, 16, 64 * KB, 64, 20, 5, 4 * MB, 1.59e9},
    {80, "A100", 2048, 32, 164 * KB, 64, 47, 10.2, 40 * MB, 1.41e9},
    {86, "RTX 3090", 1536, 16, 100 * KB, 128, L2_BYTES, 6.7, 6 * MB, 1.7e9},
    {89, "RTX 4090", 1536, 24, 100 * KB, 128, L2_BYTES, 3.1, 72 * MB, 2.52e9},
    {90, "H100", 2048, 32, 228 * KB, 128, L2_BYTES, 15, 50 * MB, 1.7e9},
    {100, "B200", 2048, 32, 228 * KB, 128, L2_BYTES, 29, 126 * MB, 1.85e9},
    {120, "RTX 5090", 1536, 24, 100 * KB, 128, L2_BYTES, 4.4, 96 * MB, 2.41e9},
};

void wpk_cuda_machine(int capability, int sm_count, struct wpk_cuda_machine *out)
{
    const struct row *row = &rows[0];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        row = rows[i].capability <= capability ? &rows[i] : row;
    }
    *out = (struct wpk_cuda_machine){
        .rates_of = row->name,
        .rates_known = row->capability == capability,
        .sm_count = sm_count,
        .threads_max = row->threads_max,
        .block_threads_max = 1024,
        .blocks_max = row->blocks_max,
        .registers_max = 65536,
        .shared_max = row->shared_max,
        .block_shared_max = 48 * KB, /* more needs an attribute of the function */
        .multiply_adds = row->multiply_adds,
        .shared_words = 32,
        .l2_bytes = row->l2_bytes,
        .dram_bytes = row->dram_bytes,
        .l2_size = row->l2_size,
        .latency = LATENCY,
        .barrier = BARRIER,
        .launch = LAUNCH_SECONDS * row->hertz,
        .copies_ahead = capability >= 80,
        .hertz = row->hertz,
    };
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

int64_t wpk_cuda_blocks_by_registers(const struct wpk_cuda_machine *machine, int64_t threads,
                                     int registers)
{
    int64_t warps = round_up(threads, WPK_CUDA_WARP) / WPK_CUDA_WARP;
    int64_t each = registers > 0 ? (int64_t)registers * WPK_CUDA_WARP : 1;
    return machine->registers_max /
           (round_up(warps, WPK_CUDA_SCHEDULERS) * round_up(each, WPK_CUDA_REGISTER_UNIT));
}
