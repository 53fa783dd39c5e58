/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/model.h"

#include "common/cuda_machine.h"
#include <math.h>
#include <stdbool.h>

#define WARP_LANES 32
#define WARPS_TO_HIDE 16 /* of a multiprocessor: more hide no more latency */

/* Blocks that a multiprocessor has at a time. */
static double resident(const struct wpk_cuda_machine *m, int64_t threads, int64_t shared_bytes,
                       int registers)
{
    int64_t warps = (threads + WARP_LANES - 1) / WARP_LANES;
    int64_t count = m->threads_max / (warps * WARP_LANES);
    int64_t by_shared = shared_bytes > 0 ? m->shared_max / shared_bytes : count;
    int64_t by_registers = wpk_cuda_blocks_by_registers(m, threads, registers);
    count = by_shared < count ? by_shared : count;
    count = by_registers < count ? by_registers : count;
    count = count > m->blocks_max ? m->blocks_max : count;
    return (double)(count < 1 ? 1 : count);
}

double wpk_launch_model(const struct wpk_cuda_machine *m, const struct wpk_launch_counts *counts,
                        int64_t blocks, int64_t threads, int64_t shared_bytes, int registers)
{
    double schedulers = m->multiply_adds / WARP_LANES; /* warp instructions in a cycle */
    double each = 1 / (double)blocks;
    double issue = (double)counts->warp_instructions * each / schedulers;
    double shared = (double)counts->shared_wavefronts * each;
    double l2 = (double)counts->global_sectors * WPK_CUDA_SECTOR_BYTES * each / m->l2_bytes;
    double busy = fmax(issue, fmax(shared, l2)); /* cycles of a block that has all to itself */
    double at_once =
        fmin(resident(m, threads, shared_bytes, registers), ceil((double)blocks / m->sm_count));
    double warps = (double)((threads + WARP_LANES - 1) / WARP_LANES) * at_once;
    /* Every request of a warp waits for its data; other warps fill the time. */
    double requests = (double)(counts->global_requests + counts->shared_requests) * each /
                      (double)((threads + WARP_LANES - 1) / WARP_LANES);
    double exposed = requests * m->latency / 8 / fmin(fmax(warps, 1), WARPS_TO_HIDE);
    double rounds = ceil((double)blocks / ((double)m->sm_count * at_once));
    double computing = rounds * (fmax(busy * at_once, exposed) + m->latency);
    /* Tensors that the second cache does not hold come from memory, once. */
    bool large = counts->global_bytes > (uint64_t)m->l2_size;
    double dram = large ? (double)counts->global_bytes / (m->dram_bytes * m->sm_count) : 0;
    return (m->launch + fmax(computing, dram)) / m->hertz;
}
