/* SPDX-License-Identifier: Apache-2.0 */
/* A block of threads while it runs: its warps, its shared memory and what was seen of it. */
#ifndef WPK_TESTS_GPU_BLOCK_H
#define WPK_TESTS_GPU_BLOCK_H

#include "tests/gpu/memory.h"
#include "tests/gpu/ptx.h"
#include "tests/gpu/shadow.h"
#include "tests/gpu/traffic.h"
#include "tests/gpu/warp.h"

#define WPK_BLOCK_WARPS_MAX 32
#define WPK_BLOCK_THREADS_MAX (WPK_BLOCK_WARPS_MAX * WPK_WARP_LANES)
#define WPK_BLOCK_BARRIERS 16

/* Addresses without a space: these bits say which. */
#define WPK_WINDOW_SHARED ((uint64_t)1 << 56)
#define WPK_WINDOW_LOCAL ((uint64_t)2 << 56)
#define WPK_WINDOW_MASK ((uint64_t)255 << 56)

/* name, text */
#define WPK_KERNEL_FAULT_LIST(X)                                                                   \
    X(NONE, "no fault")                                                                            \
    X(BOUNDS, "an access outside of all allocations")                                              \
    X(ALIGNMENT, "a misaligned address")                                                           \
    X(UNDEFINED, "a register that was never written decides something")                            \
    X(UNWRITTEN, "memory is read that was never written")                                          \
    X(BLOCKS, "blocks access the same bytes of global memory, and one writes others")              \
    X(RACE, "two threads access the same bytes of shared memory without a barrier between")        \
    X(PENDING, "shared memory is accessed to which an asynchronous copy is under way")             \
    X(BARRIER, "threads of a block diverge at a barrier")                                          \
    X(SHUFFLE, "lanes of a warp diverge at an instruction for all of them")                        \
    X(UNPUBLISHED, "an atomic operation tells of stores without a fence or a barrier")             \
    X(TRAP, "a trap")                                                                              \
    X(HANG, "more instructions than the limit")

enum wpk_kernel_fault {
#define WPK_KERNEL_FAULT_ENUM(name, text) WPK_KERNEL_FAULT_##name,
    WPK_KERNEL_FAULT_LIST(WPK_KERNEL_FAULT_ENUM)
#undef WPK_KERNEL_FAULT_ENUM
        WPK_KERNEL_FAULT_COUNT
};

const char *wpk_kernel_fault_text(enum wpk_kernel_fault fault);

struct wpk_kernel_fault_report {
    enum wpk_kernel_fault fault;
    int line; /* of the PTX */
    uint32_t block[3];
    int thread;       /* in the block, x fastest; -1: all of a warp */
    uint64_t address; /* of a memory access, else 0 */
};

/* Counts of a launch, summed over its blocks. */
struct wpk_launch_counts {
    uint64_t warp_instructions;
    uint64_t thread_instructions;
    uint64_t shared_requests;   /* of warps */
    uint64_t shared_wavefronts; /* a request without bank conflicts takes one, of 16 bytes four */
    uint64_t shared_least;      /* wavefronts if no request had bank conflicts */
    uint64_t global_requests;
    uint64_t global_sectors; /* of 32 bytes, of all requests */
    uint64_t global_least;   /* sectors if what lanes access lay together */
    uint64_t global_bytes;   /* of the allocations that were accessed */
};

/* An asynchronous copy on its way: it is in shared memory when its group is waited for. */
struct wpk_copy {
    int warp;
    int line;
    uint32_t lanes;                 /* that wait for it */
    uint32_t group[WPK_WARP_LANES]; /* of the thread, from 0 */
    uint8_t size;                   /* bytes a lane */
    uint32_t to[WPK_WARP_LANES];
    uint8_t data[WPK_WARP_LANES][16];
};

struct wpk_block {
    const struct wpk_ptx_entry *entry;
    const struct wpk_device_memory *memory;
    struct wpk_device_visitor visitor; /* of global memory: this block */
    struct wpk_traffic *traffic;    /* NULL: nobody asks for it */
    struct wpk_device_range tables; /* of the module; may be read */
    const uint8_t *parameters;      /* entry->parameter_size bytes */
    uint64_t steps_left;            /* warp instructions until it counts as hanging */
    uint32_t index[3];
    struct wpk_warp warp[WPK_BLOCK_WARPS_MAX];
    int warp_count;
    uint8_t *shared; /* owned */
    uint32_t shared_size; /* bytes, with those before WPK_PTX_SHARED_RESERVED, which are nobody's */
    struct wpk_shadow shadow;
    uint8_t *local, *local_written; /* of all threads, entry->local_size each; owned */
    struct wpk_copy *copy;          /* owned */
    size_t copy_count, copy_capacity;
    uint32_t told;    /* the epoch of the last atomic operation; 0: none */
    int teller;       /* the warp that made it */
    uint32_t group[WPK_BLOCK_THREADS_MAX]; /* that a thread's copies go to now */
    struct wpk_device_range *last;         /* that was accessed, or NULL */
    struct wpk_launch_counts counts;
    struct wpk_kernel_fault_report report;
};

/* Note a fault of a lane (-1: all); the first one stays and ends the block. */
void wpk_block_fault(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                     enum wpk_kernel_fault fault, int lane, uint64_t address);

#endif
