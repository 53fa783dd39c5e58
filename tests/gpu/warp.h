/* SPDX-License-Identifier: Apache-2.0 */
/* A warp of an emulated GPU: 32 lanes with registers and a program counter each. Of lanes that
 * diverged, those that are furthest behind go first, so that they meet again; at an instruction for
 * several lanes the first ones wait for the others. */
#ifndef WPK_TESTS_GPU_WARP_H
#define WPK_TESTS_GPU_WARP_H

#include "tests/gpu/ptx.h"

struct wpk_block;

enum wpk_warp_state {
    WPK_WARP_RUNS,
    WPK_WARP_WAITS, /* at a barrier */
    WPK_WARP_ENDED,
};

/* Invariants: active is a subset of live; lanes outside of live have ended. */
struct wpk_warp {
    uint8_t *file;          /* registers: entry->file_size bytes */
    uint32_t *defined;      /* of each register the lanes that were written */
    uint32_t live;          /* lanes that have not ended */
    uint32_t active;        /* lanes that execute the instruction */
    uint32_t parked;        /* lanes that wait for others of the warp at an instruction */
    uint32_t undefined;     /* lanes for which an instruction has no defined result */
    int at[WPK_WARP_LANES]; /* index of the next instruction of each lane */
    int next;               /* of the active lanes, after the instruction */
    int behind;             /* the active lanes may run to here before others must be looked at */
    enum wpk_warp_state state;
    int barrier;     /* that it waits at */
    uint32_t unfenced; /* lanes that stored to global memory, without a fence since */
    uint32_t stored;   /* the block's epoch (shadow.h) of the last such store; 0: none */
    uint32_t synced; /* how often its lanes were synchronised in this block */
    int number;      /* in the block */
    struct wpk_block *block;
};

/* Run until the warp ends, waits, or the block has a fault. */
void wpk_warp_run(struct wpk_warp *warp);

/* All lanes begin at the first instruction. */
void wpk_warp_start(struct wpk_warp *warp, uint32_t live);

#endif
