/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a multiprocessor are those of its capability in the CUDA C++ Programming Guide,
 * "Compute Capabilities"; rates are those of the H100 and H200, from NVIDIA's "H100 Tensor Core GPU
 * Architecture", shared out among the multiprocessors. These numbers were not timed. */
#include "common/cuda_machine.h"

#define KB ((int64_t)1 << 10)

void wpk_cuda_machine(int capability, int sm_count, struct wpk_cuda_machine *out)
{
    bool large = capability == 80 || capability == 90 || capability == 100;
    *out = (struct wpk_cuda_machine){
        .sm_count = sm_count,
        .threads_max = large             ? 2048
                       : capability < 80 ? 1024
                                         : 1536,
        .block_threads_max = 1024,
        .blocks_max = large ? 32 : 16,
        .registers_max = 65536,
        .shared_max = capability >= 90 && large ? 228 * KB
                      : large                   ? 164 * KB
                                                : 100 * KB,
        .block_shared_max = 48 * KB, /* more needs an attribute of the function */
        .multiply_adds = capability == 80 ? 64 : 128,
        .shared_words = 32,
        .l2_bytes = 40,
        .dram_bytes = 15,
        .l2_size = 50 << 20,
        .latency = 700,
        .barrier = 40,
        .launch = 4000,
        .copies_ahead = capability >= 80,
        .hertz = 1.7e9,
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
