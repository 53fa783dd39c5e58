/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU in numbers, which follow from its class alone. */
#ifndef WPK_COMMON_CUDA_MACHINE_H
#define WPK_COMMON_CUDA_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of every architecture that wpk knows. */
#define WPK_CUDA_WARP 32              /* lanes */
#define WPK_CUDA_BANKS 32             /* of shared memory, of a word each */
#define WPK_CUDA_SECTOR_BYTES 32      /* by which global memory is read and written */
#define WPK_CUDA_SECTOR_ELEMENTS 8    /* of f32 */
#define WPK_CUDA_SECTORS_A_CYCLE 4    /* that the first cache hands out */
#define WPK_CUDA_SCHEDULERS 4         /* of a multiprocessor */
#define WPK_CUDA_THREAD_REGISTERS 255 /* at most */
#define WPK_CUDA_REGISTER_UNIT 256    /* a warp gets as many at a time */
#define WPK_CUDA_EXCHANGE_CYCLES 30   /* of one between lanes of a warp */

/* The machine's numbers that rules, ranks and the emulator's model read. */
struct wpk_cuda_machine {
    const char *rates_of; /* the GPU whose rates these are: "H100" */
    bool rates_known; /* false: no GPU of the capability has a row; it has that of an older one */
    int sm_count;
    int threads_max, block_threads_max;   /* of a multiprocessor, of a block */
    int blocks_max;                       /* of a multiprocessor at a time */
    int registers_max;                    /* of a multiprocessor */
    int64_t shared_max, block_shared_max; /* bytes */
    double multiply_adds;                 /* in a cycle of a multiprocessor */
    double shared_words;                  /* that it reads in a cycle */
    double l2_bytes;                      /* that come to it in a cycle, if all want some */
    double dram_bytes;                    /* the same from memory behind it */
    int64_t l2_size;                      /* bytes */
    double latency;                       /* cycles from a load to its use, barriers included */
    double barrier;                       /* cycles of one, and of waiting for what is there */
    double launch;                        /* cycles */
    bool copies_ahead;                    /* it has asynchronous copies to shared memory */
    double hertz;
};

/* Fill `out` for a capability (90: sm_90) and a number of multiprocessors. Rates of a capability
 * that is not known are those of the newest one below it, or of the oldest that is known. */
void wpk_cuda_machine(int capability, int sm_count, struct wpk_cuda_machine *out);

/* The blocks for which a multiprocessor has registers: each of its schedulers has a part of them,
 * and of a block's warps. A kernel whose registers are not known, 0, is taken to have one. */
int64_t wpk_cuda_blocks_by_registers(const struct wpk_cuda_machine *machine, int64_t threads,
                                     int registers);

#endif
