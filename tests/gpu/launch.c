/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/launch.h"

#include <stdlib.h>
#include <string.h>

static uint32_t threads_of(const struct wpk_launch *launch)
{
    return launch->block[0] * launch->block[1] * launch->block[2];
}

static bool is_possible(const struct wpk_launch *launch)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->grid[i] == 0 || launch->block[i] == 0 ||
            launch->block[i] > (i == 2 ? 64 : WPK_BLOCK_THREADS_MAX) ||
            launch->grid[i] > (i == 0 ? INT32_MAX : 65535)) {
            return false;
        }
        threads *= launch->block[i];
    }
    uint32_t most = launch->entry->threads_max;
    return threads <= WPK_BLOCK_THREADS_MAX && (most == 0 || threads <= most) &&
           (uint64_t)launch->shared_size + launch->entry->shared_size <= WPK_LAUNCH_SHARED_MAX;
}

static void fill(const struct wpk_warp *warp, const struct wpk_ptx_operand *at, uint64_t bits)
{
    if (at->size == 0) {
        uint32_t all = bits != 0 ? UINT32_MAX : 0;
        memcpy(warp->file + at->offset, &all, sizeof(all));
        return;
    }
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        memcpy(warp->file + at->offset + (size_t)lane * at->size, &bits, at->size);
    }
}

static wpk_err init_warp(struct wpk_block *block, int number)
{
    struct wpk_warp *warp = &block->warp[number];
    const struct wpk_ptx_entry *entry = block->entry;
    size_t size = (entry->file_size + 63) / 64 * 64;
    warp->block = block;
    warp->number = number;
    warp->file = aligned_alloc(64, size);
    warp->defined = calloc((size_t)entry->register_count + 1, sizeof(*warp->defined));
    if (warp->file == NULL || warp->defined == NULL) {
        return WPK_ENOMEM;
    }
    memset(warp->file, 0, size);
    for (int i = 0; i < entry->constant_count; i++) {
        fill(warp, &entry->constant[i].at, entry->constant[i].bits);
    }
    return WPK_OK;
}

/* Shared memory that the launch adds begins at a multiple of 16. */
static uint32_t shared_size(const struct wpk_launch *launch)
{
    uint32_t own = WPK_PTX_SHARED_RESERVED + launch->entry->shared_size;
    return launch->shared_size == 0 ? own : (own + 15) / 16 * 16 + launch->shared_size;
}

static wpk_err init_block(const struct wpk_launch *launch, struct wpk_block *block)
{
    uint32_t threads = threads_of(launch);
    uint64_t tables = (uint64_t)(uintptr_t)launch->ptx->tables;
    wpk_err err;
    *block = (struct wpk_block){.entry = launch->entry,
                                .memory = launch->memory,
                                .visitor = {.first = launch->memory->blocks + 1},
                                .traffic = launch->traffic,
                                .tables = {.from = tables, .to = tables + launch->ptx->tables_size},
                                .parameters = launch->parameters,
                                .warp_count = (int)((threads + 31) / WPK_WARP_LANES),
                                .shared_size = shared_size(launch)};
    size_t local = (size_t)threads * launch->entry->local_size;
    block->shared = aligned_alloc(64, ((size_t)block->shared_size + 64) / 64 * 64);
    block->local = aligned_alloc(64, (local + 64) / 64 * 64);
    block->local_written = calloc(local + 1, 1);
    err = block->shared == NULL || block->local == NULL || block->local_written == NULL
              ? WPK_ENOMEM
              : wpk_shadow_init(&block->shadow, block->shared_size);
    for (int i = 0; i < block->warp_count && err == WPK_OK; i++) {
        err = init_warp(block, i);
    }
    return err;
}

static void fini_block(struct wpk_block *block)
{
    for (int i = 0; i < block->warp_count; i++) {
        free(block->warp[i].file);
        free(block->warp[i].defined);
    }
    wpk_shadow_fini(&block->shadow);
    free(block->shared);
    free(block->local);
    free(block->local_written);
    free(block->copy);
}

/* The registers that every thread has from the start, and that nothing writes; see
 * WPK_PTX_SPECIAL_LIST. */
static void fill_special(const struct wpk_launch *launch, struct wpk_warp *warp)
{
    uint32_t(*special)[WPK_WARP_LANES] = (void *)warp->file;
    for (uint32_t lane = 0; lane < WPK_WARP_LANES; lane++) {
        uint32_t thread = (uint32_t)warp->number * WPK_WARP_LANES + lane;
        special[0][lane] = thread % launch->block[0];
        special[1][lane] = thread / launch->block[0] % launch->block[1];
        special[2][lane] = thread / launch->block[0] / launch->block[1];
        for (int i = 0; i < 3; i++) {
            special[3 + i][lane] = launch->block[i];
            special[9 + i][lane] = launch->grid[i];
        }
        special[12][lane] = lane;
        special[13][lane] = (uint32_t)warp->number;
    }
}

/* Those of them that say which block it is. */
static void fill_index(struct wpk_warp *warp)
{
    uint32_t(*special)[WPK_WARP_LANES] = (void *)warp->file;
    for (int i = 0; i < 3; i++) {
        for (uint32_t lane = 0; lane < WPK_WARP_LANES; lane++) {
            special[6 + i][lane] = warp->block->index[i];
        }
    }
}

static void start_warp(const struct wpk_launch *launch, struct wpk_warp *warp)
{
    const struct wpk_ptx_entry *entry = launch->entry;
    uint32_t rest = threads_of(launch) - (uint32_t)warp->number * WPK_WARP_LANES;
    memset(warp->defined, 0, (size_t)entry->register_count * sizeof(*warp->defined));
    for (int i = 0; i < WPK_PTX_SPECIAL_COUNT; i++) {
        warp->defined[i] = UINT32_MAX;
    }
    for (int i = 0; i < entry->constant_count; i++) {
        warp->defined[entry->constant[i].at.reg] = UINT32_MAX;
    }
    fill_index(warp);
    wpk_warp_start(warp, rest >= WPK_WARP_LANES ? UINT32_MAX : (1U << rest) - 1);
}

/* Warps that wait go on when all others wait at the same barrier or have ended.
 *   source  PTX ISA 9.0, barrier: threads that have exited are not waited for */
static void release(struct wpk_block *block)
{
    const struct wpk_warp *first = NULL;
    bool apart = false;
    for (int i = 0; i < block->warp_count; i++) {
        const struct wpk_warp *warp = &block->warp[i];
        if (warp->state == WPK_WARP_WAITS) {
            first = first == NULL ? warp : first;
            apart |= warp->barrier != first->barrier;
        }
    }
    if (first != NULL && apart) {
        const struct wpk_ptx_instruction *in =
            &block->entry->instruction[first->at[__builtin_ctz(first->live)] - 1];
        wpk_block_fault(&block->warp[first->number], in, WPK_KERNEL_FAULT_BARRIER, -1, 0);
        return;
    }
    wpk_shadow_pass(&block->shadow);
    for (int i = 0; i < block->warp_count; i++) {
        if (block->warp[i].state == WPK_WARP_WAITS) {
            block->warp[i].state = WPK_WARP_RUNS;
        }
    }
}

/* The number of what comes at place `i` of `count`. */
static uint64_t in_order(enum wpk_launch_order order, uint64_t i, uint64_t count)
{
    uint64_t odd = count / 2;
    return order == WPK_LAUNCH_ASCENDING    ? i
           : order == WPK_LAUNCH_DESCENDING ? count - 1 - i
           : i < odd                        ? 2 * i + 1
                                            : 2 * (i - odd);
}

static void run_block(const struct wpk_launch *launch, struct wpk_block *block)
{
    bool runs = true;
    wpk_shadow_begin(&block->shadow);
    block->copy_count = 0;
    block->told = 0;
    memset(block->group, 0, (size_t)block->warp_count * WPK_WARP_LANES * sizeof(*block->group));
    memset(block->local_written, 0, (size_t)threads_of(launch) * launch->entry->local_size);
    block->steps_left = launch->steps_max != 0 ? launch->steps_max : WPK_LAUNCH_STEPS_MAX;
    for (int i = 0; i < block->warp_count; i++) {
        start_warp(launch, &block->warp[i]);
    }
    while (runs && block->report.fault == WPK_KERNEL_FAULT_NONE) {
        runs = false;
        for (int i = 0; i < block->warp_count && block->report.fault == WPK_KERNEL_FAULT_NONE;
             i++) {
            uint64_t at = in_order(launch->order, (uint64_t)i, (uint64_t)block->warp_count);
            if (block->warp[at].state == WPK_WARP_RUNS) {
                wpk_warp_run(&block->warp[at]);
                runs = true;
            }
        }
        if (runs && block->report.fault == WPK_KERNEL_FAULT_NONE) {
            release(block);
        }
    }
}

static void add(struct wpk_launch_counts *to, const struct wpk_launch_counts *from)
{
    to->warp_instructions += from->warp_instructions;
    to->thread_instructions += from->thread_instructions;
    to->shared_requests += from->shared_requests;
    to->shared_wavefronts += from->shared_wavefronts;
    to->shared_least += from->shared_least;
    to->global_least += from->global_least;
    to->global_requests += from->global_requests;
    to->global_sectors += from->global_sectors;
    to->global_bytes += from->global_bytes;
}

wpk_err wpk_launch_run(const struct wpk_launch *launch, struct wpk_launch_counts *counts,
                       struct wpk_kernel_fault_report *report)
{
    if (!is_possible(launch)) {
        return WPK_EINVAL;
    }
    struct wpk_block *block = malloc(sizeof(*block));
    if (block == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = init_block(launch, block);
    for (int i = 0; i < block->warp_count && err == WPK_OK; i++) {
        fill_special(launch, &block->warp[i]);
    }
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    for (uint64_t i = 0;
         i < blocks && err == WPK_OK && block->report.fault == WPK_KERNEL_FAULT_NONE; i++) {
        uint64_t at = in_order(launch->order, i, blocks);
        block->index[0] = (uint32_t)(at % launch->grid[0]);
        block->index[1] = (uint32_t)(at / launch->grid[0] % launch->grid[1]);
        block->index[2] = (uint32_t)(at / launch->grid[0] / launch->grid[1]);
        block->visitor.block = ++launch->memory->blocks;
        block->visitor.told = false;
        run_block(launch, block);
    }
    if (err == WPK_OK) {
        add(counts, &block->counts);
        *report = block->report;
    }
    fini_block(block);
    free(block);
    return err;
}
