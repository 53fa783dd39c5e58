/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores and asynchronous copies. Each access is checked, and counted as the hardware would
 * serve it. */
#include "tests/gpu/block.h"
#include "tests/gpu/lanes.h"
#include "tests/gpu/operation.h"
#include "tests/gpu/request.h"

#include <stdlib.h>

#define STORE_BYTES_MAX 32 /* of a lane */

/* The accesses of a warp's active lanes: addresses of the space, after windows are resolved. */
struct access {
    enum wpk_ptx_space space;
    uint32_t size;                  /* bytes a lane */
    const uint32_t_lane *read_size; /* bytes that a lane reads, if fewer; or NULL */
    uint64_t address[WPK_WARP_LANES];
    uint32_t again; /* lanes that write what another block wrote */
};

/* ---- checks */

static int thread_of(const struct wpk_warp *warp, int lane)
{
    return warp->number * WPK_WARP_LANES + lane;
}

static bool is_in_tables(const struct wpk_block *block, uint64_t at, uint32_t size)
{
    return at >= block->tables.from && at < block->tables.to && size <= block->tables.to - at;
}

static bool check_global(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                         struct access *access, bool writes)
{
    static const enum wpk_kernel_fault faults[] = {[WPK_DEVICE_RIGHT] = WPK_KERNEL_FAULT_NONE,
                                                   [WPK_DEVICE_UNWRITTEN] =
                                                       WPK_KERNEL_FAULT_UNWRITTEN,
                                                   [WPK_DEVICE_RACE] = WPK_KERNEL_FAULT_BLOCKS};
    struct wpk_block *block = warp->block;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        uint64_t at = access->address[lane];
        if ((warp->active >> lane & 1) == 0 || (!writes && is_in_tables(block, at, access->size))) {
            continue;
        }
        if (block->last == NULL || at < block->last->from || at >= block->last->to) {
            block->last = wpk_device_memory_find(block->memory, at);
            if (block->last != NULL && block->last->visited != block->visitor.first) {
                block->last->visited = block->visitor.first;
                block->counts.global_bytes += block->last->to - block->last->from;
            }
        }
        uint32_t size = access->read_size == NULL ? access->size : access->read_size[lane];
        if (block->last == NULL || size > block->last->to - at) {
            wpk_block_fault(warp, in, WPK_KERNEL_FAULT_BOUNDS, lane, at);
            return false;
        }
        enum wpk_device_verdict verdict =
            writes ? wpk_device_memory_write(block->last, at, size, &block->visitor)
                   : wpk_device_memory_read(block->last, at, size, &block->visitor);
        access->again |= (uint32_t)(verdict == WPK_DEVICE_AGAIN) << lane;
        if (verdict != WPK_DEVICE_RIGHT && verdict != WPK_DEVICE_AGAIN) {
            wpk_block_fault(warp, in, faults[verdict], lane, at);
            return false;
        }
    }
    return true;
}

static uint8_t bytes_of_word(uint64_t from, uint64_t to, uint64_t word)
{
    uint8_t bytes = 0;
    for (uint64_t b = 0; b < 4; b++) {
        bytes |= (uint8_t)((4 * word + b >= from && 4 * word + b < to) << b);
    }
    return bytes;
}

typedef enum wpk_shadow_verdict (*note_access)(struct wpk_shadow *shadow, size_t word,
                                               uint8_t bytes, int thread, uint32_t synced);

/* One thread's access of shared memory: in bounds, written before it is read, no race. */
static bool check_shared_lane(struct wpk_warp *warp, const struct wpk_ptx_instruction *in, int lane,
                              uint64_t from, uint32_t size, note_access note)
{
    struct wpk_block *block = warp->block;
    int thread = thread_of(warp, lane);
    static const enum wpk_kernel_fault faults[] = {[WPK_SHADOW_RIGHT] = WPK_KERNEL_FAULT_NONE,
                                                   [WPK_SHADOW_RACE] = WPK_KERNEL_FAULT_RACE,
                                                   [WPK_SHADOW_UNWRITTEN] =
                                                       WPK_KERNEL_FAULT_UNWRITTEN,
                                                   [WPK_SHADOW_PENDING] = WPK_KERNEL_FAULT_PENDING};
    enum wpk_kernel_fault fault = WPK_KERNEL_FAULT_NONE;
    if (from < WPK_PTX_SHARED_RESERVED || from > block->shared_size ||
        size > block->shared_size - from) {
        fault = WPK_KERNEL_FAULT_BOUNDS;
    }
    for (uint64_t word = from / 4; word * 4 < from + size && fault == WPK_KERNEL_FAULT_NONE;
         word++) {
        uint8_t bytes = size >= 4 ? 15 : bytes_of_word(from, from + size, word);
        fault = faults[note(&block->shadow, word, bytes, thread, warp->synced)];
    }
    if (fault != WPK_KERNEL_FAULT_NONE) {
        wpk_block_fault(warp, in, fault, lane, from);
    }
    return fault == WPK_KERNEL_FAULT_NONE;
}

static bool check_shared(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                         const struct access *access, note_access note)
{
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        if ((warp->active >> lane & 1) != 0 &&
            !check_shared_lane(warp, in, lane, access->address[lane], access->size, note)) {
            return false;
        }
    }
    return true;
}

static bool check_local(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                        const struct access *access, bool writes)
{
    struct wpk_block *block = warp->block;
    uint32_t size = block->entry->local_size;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        uint64_t at = access->address[lane];
        if ((warp->active >> lane & 1) == 0) {
            continue;
        }
        if (at > size || access->size > size - at) {
            wpk_block_fault(warp, in, WPK_KERNEL_FAULT_BOUNDS, lane, at);
            return false;
        }
        uint8_t *written = block->local_written + (uint64_t)thread_of(warp, lane) * size + at;
        for (uint32_t b = 0; b < access->size; b++) {
            if (!writes && written[b] == 0) {
                wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNWRITTEN, lane, at);
                return false;
            }
            written[b] |= writes;
        }
    }
    return true;
}

/* Fill *out with the addresses in operand `at`, of one space.
 *   errors  false: a fault is noted */
static bool resolve(struct wpk_warp *warp, const struct wpk_ptx_instruction *in, int at,
                    enum wpk_ptx_space space, uint32_t size, struct access *out)
{
    const struct wpk_ptx_operand *operand = &in->operand[at];
    const uint64_t_lane *wide = WPK_LANES(uint64_t, at);
    const uint32_t_lane *narrow = WPK_LANES(uint32_t, at);
    uint32_t undefined = warp->active & ~warp->defined[operand->reg];
    out->size = size;
    out->read_size = NULL;
    out->again = 0;
    out->space = space;
    if (undefined != 0) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNDEFINED, __builtin_ctz(undefined), 0);
        return false;
    }
    uint64_t bad = 0;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        out->address[lane] = operand->size == 4 ? (uint32_t)(narrow[lane] + (uint32_t)in->offset)
                                                : wide[lane] + (uint64_t)in->offset;
        bad |= (warp->active >> lane & 1) != 0 ? out->address[lane] & (size - 1) : 0;
    }
    uint64_t first = out->address[__builtin_ctz(warp->active)];
    if (space == WPK_PTX_GENERIC) {
        out->space = (first & WPK_WINDOW_SHARED) != 0  ? WPK_PTX_SHARED
                     : (first & WPK_WINDOW_LOCAL) != 0 ? WPK_PTX_LOCAL
                                                       : WPK_PTX_GLOBAL;
    }
    for (int lane = 0; lane < WPK_WARP_LANES && space == WPK_PTX_GENERIC; lane++) {
        uint64_t window = out->space == WPK_PTX_SHARED  ? WPK_WINDOW_SHARED
                          : out->space == WPK_PTX_LOCAL ? WPK_WINDOW_LOCAL
                                                        : 0;
        out->address[lane] ^= window; /* lanes of another space are then out of bounds */
    }
    for (int lane = 0; lane < WPK_WARP_LANES && bad != 0; lane++) {
        if ((warp->active >> lane & 1) != 0 && (out->address[lane] & (size - 1)) != 0) {
            wpk_block_fault(warp, in, WPK_KERNEL_FAULT_ALIGNMENT, lane, out->address[lane]);
            return false;
        }
    }
    return true;
}

static bool check(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                  struct access *access, bool writes)
{
    struct wpk_launch_counts *counts = &warp->block->counts;
    uint64_t sectors;
    switch (access->space) {
    case WPK_PTX_SHARED:
        counts->shared_requests++;
        counts->shared_wavefronts +=
            wpk_request_wavefronts(warp->active, access->address, access->size);
        counts->shared_least += wpk_request_least_wavefronts(warp->active, access->size);
        return check_shared(warp, in, access, writes ? wpk_shadow_write : wpk_shadow_read);
    case WPK_PTX_LOCAL:
        return check_local(warp, in, access, writes);
    default:
        counts->global_requests++;
        sectors = wpk_request_sectors(warp->active, access->address);
        counts->global_sectors += sectors;
        counts->global_least +=
            wpk_request_least_sectors(warp->active, access->address, access->size);
        if (warp->block->traffic != NULL) {
            wpk_traffic_note(warp->block->traffic, warp->active, access->address, access->size,
                             sectors);
        }
        return check_global(warp, in, access, writes);
    }
}

static uint8_t *locate(const struct wpk_warp *warp, const struct access *access, int lane)
{
    struct wpk_block *block = warp->block;
    switch (access->space) {
    case WPK_PTX_SHARED:
        return block->shared + access->address[lane];
    case WPK_PTX_LOCAL:
        return block->local + (uint64_t)thread_of(warp, lane) * block->entry->local_size +
               access->address[lane];
    default:
        return (uint8_t *)(uintptr_t)access->address[lane]; // NOLINT: a device address is a host's
    }
}

/*   shape  out [WPK_WARP_LANES]; those of active lanes are filled */
static void locate_all(const struct wpk_warp *warp, const struct access *access, uint8_t **out)
{
    for (uint32_t lanes = warp->active; lanes != 0; lanes &= lanes - 1) {
        int lane = __builtin_ctz(lanes);
        out[lane] = locate(warp, access, lane);
    }
}

/* ---- loads and stores */

/* Load register `i` of the active lanes.
 *   shape  from [WPK_WARP_LANES] */
static void load_register(struct wpk_warp *warp, const struct wpk_ptx_instruction *in, int i,
                          uint8_t *const *from)
{
    const struct wpk_ptx_operand *to = &in->operand[i];
    uint8_t *file = warp->file + to->offset;
    for (uint32_t lanes = warp->active; lanes != 0; lanes &= lanes - 1) {
        int lane = __builtin_ctz(lanes);
        const uint8_t *at = from[lane] + (ptrdiff_t)i * in->size;
        if (in->size == 4 && to->size == 4) {
            memcpy(file + (size_t)lane * 4, at, 4);
        } else if (in->size == 8) {
            memcpy(file + (size_t)lane * 8, at, 8);
        } else {
            uint64_t bits = 0;
            memcpy(&bits, at, in->size);
            bits = wpk_ptx_extend(bits, in->type);
            memcpy(file + (size_t)lane * to->size, &bits, to->size);
        }
    }
}

static void load_parameter(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint8_t *from[WPK_WARP_LANES];
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        from[lane] = (uint8_t *)(uintptr_t)(warp->block->parameters + in->offset);
    }
    for (int i = 0; i < in->vector; i++) {
        load_register(warp, in, i, from);
    }
}

void wpk_ptx_load(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    struct access access;
    if (in->space == WPK_PTX_PARAM) {
        load_parameter(warp, in);
        return;
    }
    if (!resolve(warp, in, in->vector, in->space, (uint32_t)in->size * in->vector, &access)) {
        return;
    }
    struct access used = access;
    for (int lane = 0; lane < WPK_WARP_LANES && in->used_size > 0; lane++) {
        used.address[lane] += in->used_from;
        used.size = in->used_size;
    }
    if (!check(warp, in, &used, false)) {
        return;
    }
    uint8_t *from[WPK_WARP_LANES];
    locate_all(warp, &access, from);
    for (int i = 0; i < in->vector; i++) {
        load_register(warp, in, i, from);
    }
}

static void store_register(const struct wpk_warp *warp, const struct wpk_ptx_instruction *in, int i,
                           uint8_t *const *to)
{
    const struct wpk_ptx_operand *from = &in->operand[i];
    const uint8_t *file = warp->file + from->offset;
    for (uint32_t lanes = warp->active; lanes != 0; lanes &= lanes - 1) {
        int lane = __builtin_ctz(lanes);
        uint8_t *at = to[lane] + (ptrdiff_t)i * in->size;
        if (in->size == 4 && from->size == 4) {
            memcpy(at, file + (size_t)lane * 4, 4);
        } else {
            memcpy(at, file + (size_t)lane * from->size, in->size);
        }
    }
}

void wpk_ptx_store(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    struct access access;
    for (int i = 0; i < in->vector; i++) {
        uint32_t undefined = warp->active & ~warp->defined[in->operand[i].reg];
        if (undefined != 0) {
            wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNDEFINED, __builtin_ctz(undefined), 0);
            return;
        }
    }
    if (!resolve(warp, in, in->vector, in->space, (uint32_t)in->size * in->vector, &access) ||
        !check(warp, in, &access, true)) {
        return;
    }
    if (access.space == WPK_PTX_GLOBAL) {
        if (warp->block->told == warp->block->shadow.epoch && warp->block->teller != warp->number) {
            wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNPUBLISHED, -1, 0); /* it came too late */
            return;
        }
        warp->unfenced |= warp->active;
        warp->stored = warp->block->shadow.epoch;
    }
    uint8_t *to[WPK_WARP_LANES], before[WPK_WARP_LANES][STORE_BYTES_MAX];
    locate_all(warp, &access, to);
    for (uint32_t lanes = access.again; lanes != 0; lanes &= lanes - 1) {
        int lane = __builtin_ctz(lanes);
        memcpy(before[lane], to[lane], access.size);
    }
    for (int i = 0; i < in->vector; i++) {
        store_register(warp, in, i, to);
    }
    for (uint32_t lanes = access.again; lanes != 0; lanes &= lanes - 1) {
        int lane = __builtin_ctz(lanes);
        if (memcmp(before[lane], to[lane], access.size) != 0) {
            wpk_block_fault(warp, in, WPK_KERNEL_FAULT_BLOCKS, lane, access.address[lane]);
            return;
        }
    }
}

/* ---- atomic operations */

void wpk_ptx_fence(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    (void)in;
    warp->unfenced &= ~warp->active;
}

/* An atomic operation tells others of what was stored: each thread of the block
 * that stored to global memory has passed a fence, and those of other warps a barrier, too. */
static bool is_published(const struct wpk_warp *warp)
{
    const struct wpk_block *block = warp->block;
    bool published = true;
    for (int i = 0; i < block->warp_count; i++) {
        const struct wpk_warp *other = &block->warp[i];
        bool apart = other != warp && other->stored == block->shadow.epoch;
        published = published && other->unfenced == 0 && !apart;
    }
    return published;
}

void wpk_ptx_atomic_increment(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    struct access access;
    uint32_t undefined = warp->active & ~warp->defined[in->operand[2].reg];
    const uint32_t_lane *limit = WPK_LANES(uint32_t, 2);
    uint32_t before[WPK_WARP_LANES] = {0};
    if (undefined != 0) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNDEFINED, __builtin_ctz(undefined), 0);
        return;
    }
    if (!resolve(warp, in, 1, in->space, in->size, &access)) {
        return;
    }
    bool global = access.space == WPK_PTX_GLOBAL;
    warp->block->visitor.told = true; /* atomic operations do not race with one another */
    if (!check(warp, in, &access, !global)) {
        return;
    }
    if (global && !check_global(warp, in, &access, true)) {
        return;
    }
    if (!is_published(warp)) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNPUBLISHED, -1, 0);
        return;
    }
    warp->block->told = warp->block->shadow.epoch;
    warp->block->teller = warp->number;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        if ((warp->active >> lane & 1) != 0) {
            uint8_t *at = locate(warp, &access, lane);
            memcpy(&before[lane], at, sizeof(before[lane]));
            uint32_t after = before[lane] >= limit[lane] ? 0 : before[lane] + 1;
            memcpy(at, &after, sizeof(after));
        }
    }
    wpk_lanes_put_32(warp, &in->operand[0], before);
}

/* ---- asynchronous copies */

#define COPIES_MAX ((size_t)1 << 14) /* of a block, under way */

static struct wpk_copy *new_copy(struct wpk_block *block)
{
    if (block->copy_count == COPIES_MAX) {
        return NULL;
    }
    if (block->copy_count == block->copy_capacity) {
        size_t capacity = block->copy_capacity == 0 ? 64 : 2 * block->copy_capacity;
        struct wpk_copy *grown = realloc(block->copy, capacity * sizeof(*grown));
        WPK_ASSERT(grown != NULL);
        block->copy = grown;
        block->copy_capacity = capacity;
    }
    return &block->copy[block->copy_count++];
}

/* How many bytes to read: known, and no more than are copied. */
static bool check_read_size(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                            const struct access *from)
{
    uint32_t wrong = 0;
    if (from->read_size == NULL) {
        return true;
    }
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        wrong |= (uint32_t)(from->read_size[lane] > from->size) << lane;
    }
    wrong = warp->active & (wrong | ~warp->defined[in->operand[2].reg]);
    if (wrong != 0) {
        int lane = __builtin_ctz(wrong);
        bool defined = (warp->defined[in->operand[2].reg] >> lane & 1) != 0;
        wpk_block_fault(warp, in, defined ? WPK_KERNEL_FAULT_BOUNDS : WPK_KERNEL_FAULT_UNDEFINED,
                        lane, from->address[lane]);
    }
    return wrong == 0;
}

void wpk_ptx_copy_async(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    struct wpk_block *block = warp->block;
    struct access to, from;
    struct wpk_ptx_instruction plain = *in;
    plain.offset = in->source_offset;
    if (!resolve(warp, in, 0, WPK_PTX_SHARED, in->size, &to)) {
        return;
    }
    if (!resolve(warp, &plain, 1, WPK_PTX_GLOBAL, in->size, &from)) {
        return;
    }
    uint32_t all = warp->active;
    from.read_size = in->operand_count > 2 ? WPK_LANES(uint32_t, 2) : NULL;
    if (!check_read_size(warp, in, &from)) {
        return;
    }
    for (int lane = 0; lane < WPK_WARP_LANES && from.read_size != NULL; lane++) {
        warp->active &= from.read_size[lane] == 0 ? ~(1U << lane) : WPK_LANES_ALL;
    }
    bool legal = warp->active == 0 || check(warp, in, &from, false);
    uint32_t reads = warp->active;
    warp->active = all;
    if (!legal || !check_shared(warp, in, &to, wpk_shadow_begin_copy)) {
        return;
    }
    block->counts.shared_requests++;
    block->counts.shared_wavefronts += wpk_request_wavefronts(warp->active, to.address, to.size);
    block->counts.shared_least += wpk_request_least_wavefronts(warp->active, to.size);
    struct wpk_copy *copy = new_copy(block);
    if (copy == NULL) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_HANG, -1, 0);
        return;
    }
    *copy =
        (struct wpk_copy){.warp = warp->number, .line = in->line, .lanes = all, .size = in->size};
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        copy->to[lane] = (uint32_t)to.address[lane];
        copy->group[lane] = block->group[thread_of(warp, lane)];
        if ((reads >> lane & 1) != 0) {
            size_t size = from.read_size != NULL ? from.read_size[lane] : in->size;
            memcpy(copy->data[lane], locate(warp, &from, lane), size);
        }
    }
}

void wpk_ptx_commit_group(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    (void)in;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        warp->block->group[thread_of(warp, lane)] += warp->active >> lane & 1;
    }
}

/* Write the data of an asynchronous copy for the threads that wait: others see it after a
 * barrier. */
static bool finish(struct wpk_warp *warp, const struct wpk_copy *copy, uint32_t lanes)
{
    const struct wpk_ptx_instruction at = {.line = copy->line};
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        if ((lanes >> lane & 1) != 0) {
            if (!check_shared_lane(warp, &at, lane, copy->to[lane], copy->size,
                                   wpk_shadow_end_copy)) {
                return false;
            }
            memcpy(warp->block->shared + copy->to[lane], copy->data[lane], copy->size);
        }
    }
    return true;
}

/* Active lanes whose copy belongs to a group that is waited for: all but the newest `allowed`. */
static uint32_t lanes_to_finish(const struct wpk_warp *warp, const struct wpk_copy *copy,
                                int64_t allowed)
{
    uint32_t lanes = 0;
    for (int lane = 0; lane < WPK_WARP_LANES && copy->warp == warp->number; lane++) {
        int64_t filled = warp->block->group[thread_of(warp, lane)];
        lanes |= (uint32_t)((int64_t)copy->group[lane] + allowed < filled) << lane;
    }
    return lanes & copy->lanes & warp->active;
}

void wpk_ptx_wait_group(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    struct wpk_block *block = warp->block;
    size_t kept = 0;
    for (size_t i = 0; i < block->copy_count; i++) {
        struct wpk_copy *copy = &block->copy[i];
        uint32_t lanes = lanes_to_finish(warp, copy, in->offset);
        if (lanes != 0 && !finish(warp, copy, lanes)) {
            return;
        }
        copy->lanes &= ~lanes;
        if (copy->lanes != 0) {
            block->copy[kept++] = *copy;
        }
    }
    block->copy_count = kept;
}
