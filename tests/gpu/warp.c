/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/block.h"
#include "tests/gpu/lanes.h"

#include <limits.h>

void wpk_warp_start(struct wpk_warp *warp, uint32_t live)
{
    memset(warp->at, 0, sizeof(warp->at));
    warp->live = live;
    warp->active = warp->parked = 0;
    warp->synced = 0;
    warp->unfenced = warp->stored = 0;
    warp->state = WPK_WARP_RUNS;
}

/* Choose the lanes that are furthest behind, and how far they may go alone. */
static void choose(struct wpk_warp *warp)
{
    int least = INT_MAX, second = INT_MAX;
    uint32_t active = 0;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        if (((warp->live & ~warp->parked) >> lane & 1) == 0) {
            continue;
        }
        if (warp->at[lane] < least) {
            second = least;
            least = warp->at[lane];
            active = 0;
        } else if (warp->at[lane] > least && warp->at[lane] < second) {
            second = warp->at[lane];
        }
        active |= (uint32_t)(warp->at[lane] == least) << lane;
    }
    warp->active = active;
    warp->next = least;
    warp->behind = second;
}

static void keep_place(struct wpk_warp *warp)
{
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        warp->at[lane] = (warp->active >> lane & 1) != 0 ? warp->next : warp->at[lane];
    }
}

/* Lanes of the warp that wait at the instruction, and those that are active. */
static uint32_t lanes_at(const struct wpk_warp *warp, int index)
{
    uint32_t lanes = warp->active;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        bool here = (warp->parked & warp->live) >> lane & 1 && warp->at[lane] == index;
        lanes |= (uint32_t)here << lane;
    }
    return lanes;
}

/* Make active the lanes that the instruction is for if all of them are here; the others stay. If
 * some are missing, all that are here wait, and none is active. */
static void meet(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint32_t here = lanes_at(warp, warp->next), members = warp->live;
    if (in->meeting == WPK_PTX_MEET_MEMBERS) {
        const uint32_t_lane *names = WPK_LANES(uint32_t, in->operand_count - 1);
        members &= names[__builtin_ctz(warp->active)];
    }
    uint32_t undefined = warp->active & ~warp->defined[in->operand[in->operand_count - 1].reg];
    keep_place(warp);
    if (undefined != 0) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNDEFINED, __builtin_ctz(undefined), 0);
    } else if ((members & warp->active) == 0) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_SHUFFLE, -1, 0); /* it does not name itself */
    } else if ((members & ~here) != 0) {
        warp->parked |= here;
        warp->active = 0;
    } else {
        warp->behind = members == here ? warp->behind : warp->next; /* look again after it */
        warp->parked &= ~here;
        warp->active = members;
    }
}

/* All lanes wait, and for others: they never meet. */
static void fail_to_meet(struct wpk_warp *warp)
{
    const struct wpk_ptx_instruction *in =
        &warp->block->entry->instruction[warp->at[__builtin_ctz(warp->live)]];
    wpk_block_fault(warp, in,
                    in->meeting == WPK_PTX_MEET_WARP ? WPK_KERNEL_FAULT_BARRIER
                                                     : WPK_KERNEL_FAULT_SHUFFLE,
                    -1, 0);
}

/* Results are defined in the lanes in which all that they are made of is. */
static void carry(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint32_t defined = ~warp->undefined;
    for (int i = in->carries ? in->result_count : in->operand_count; i < in->operand_count; i++) {
        defined &= warp->defined[in->operand[i].reg];
    }
    for (int i = 0; i < in->result_count; i++) {
        uint32_t *result = &warp->defined[in->operand[i].reg];
        *result = (*result & ~warp->active) | (defined & warp->active);
    }
}

/* Lanes whose guard says so; a fault if it was never written. */
static uint32_t guarded_lanes(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint32_t undefined = warp->active & ~warp->defined[in->guard.reg];
    uint32_t guard = wpk_lanes_predicate(warp, &in->guard);
    if (undefined != 0) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNDEFINED, __builtin_ctz(undefined), 0);
    }
    return warp->active & (in->negated ? ~guard : guard);
}

/* Lanes that a guard leaves out come by an instruction without the others: all that it names have
 * to be among the chosen ones. */
static void check_members(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                          uint32_t chosen)
{
    const uint32_t_lane *names = WPK_LANES(uint32_t, in->operand_count - 1);
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        bool misses = (names[lane] & warp->live & ~chosen) != 0 || (names[lane] >> lane & 1) == 0;
        if ((chosen >> lane & 1) != 0 && misses) {
            wpk_block_fault(warp, in, WPK_KERNEL_FAULT_SHUFFLE, lane, 0);
            return;
        }
    }
}

static void execute(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    struct wpk_launch_counts *counts = &warp->block->counts;
    uint32_t all = warp->active, chosen = in->guarded ? guarded_lanes(warp, in) : all;
    warp->next++;
    warp->undefined = 0;
    counts->warp_instructions++;
    counts->thread_instructions +=
        all == WPK_LANES_ALL ? WPK_WARP_LANES : (uint64_t)__builtin_popcount(all);
    if (!in->guarded || in->target >= 0) {
        in->run(warp, in); /* a branch reads its guard itself */
        carry(warp, in);
        return;
    }
    if (in->meeting == WPK_PTX_MEET_MEMBERS) {
        check_members(warp, in, chosen);
    }
    if (chosen != 0) {
        warp->active = chosen;
        in->run(warp, in);
        carry(warp, in);
        /* those that ended stay away */
        warp->active = all & warp->live;
    }
}

void wpk_warp_run(struct wpk_warp *warp)
{
    struct wpk_block *block = warp->block;
    while (warp->live != 0 && warp->state == WPK_WARP_RUNS &&
           block->report.fault == WPK_KERNEL_FAULT_NONE) {
        if ((warp->live & ~warp->parked) == 0) {
            fail_to_meet(warp);
            return;
        }
        choose(warp);
        while (warp->active != 0 && warp->next < warp->behind && warp->state == WPK_WARP_RUNS &&
               block->report.fault == WPK_KERNEL_FAULT_NONE) {
            const struct wpk_ptx_instruction *in = &block->entry->instruction[warp->next];
            if (block->steps_left == 0) {
                wpk_block_fault(warp, in, WPK_KERNEL_FAULT_HANG, -1, 0);
                return;
            }
            block->steps_left--;
            if (in->meeting != WPK_PTX_MEET_NONE && !in->guarded) {
                meet(warp, in);
            }
            if (warp->active != 0) {
                execute(warp, in);
            }
        }
        keep_place(warp);
    }
    warp->state = warp->live == 0 ? WPK_WARP_ENDED : warp->state;
}
