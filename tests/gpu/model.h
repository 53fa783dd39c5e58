/* SPDX-License-Identifier: Apache-2.0 */
/* A model of how long a launch takes, from what the emulator counted. It ranks kernels; it is no
 * measurement and was compared with none. */
#ifndef WPK_TESTS_GPU_MODEL_H
#define WPK_TESTS_GPU_MODEL_H

#include "common/cuda_machine.h"
#include "tests/gpu/block.h"

/* Seconds of a launch: waves of blocks times the slowest of a block's resources, and latency.
 *   shape   counts: of the whole launch
 *   unit    threads: of a block; shared_bytes: of a block, all of it; registers: of a thread, 0 if
 *           they are not known */
double wpk_launch_model(const struct wpk_cuda_machine *machine,
                        const struct wpk_launch_counts *counts, int64_t blocks, int64_t threads,
                        int64_t shared_bytes, int registers);

#endif
