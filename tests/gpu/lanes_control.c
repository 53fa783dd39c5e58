/* SPDX-License-Identifier: Apache-2.0 */
/* Branches, ends, barriers, and what lanes of a warp tell each other. */
#include "tests/gpu/block.h"
#include "tests/gpu/lanes.h"
#include "tests/gpu/operation.h"

void wpk_ptx_nothing(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    (void)warp, (void)in;
}

/* The guard of a branch is what decides, so the warp leaves it to this function. */
void wpk_ptx_branch(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint32_t taken = warp->active;
    if (in->guarded) {
        uint32_t guard = wpk_lanes_predicate(warp, &in->guard);
        taken &= in->negated ? ~guard : guard;
    }
    if (taken == warp->active) {
        warp->next = in->target;
        return;
    }
    if (taken != 0) {
        for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
            if ((warp->active >> lane & 1) != 0) {
                warp->at[lane] = (taken >> lane & 1) != 0 ? in->target : warp->next;
            }
        }
        warp->active = 0; /* they part */
    }
}

void wpk_ptx_exit(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    (void)in;
    warp->live &= ~warp->active;
    warp->active = 0;
    warp->parked = 0; /* nobody waits for them any more: those that wait look again */
}

static void trap(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    wpk_block_fault(warp, in, WPK_KERNEL_FAULT_TRAP, -1, 0);
}

static void wait_for_block(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint32_t number = WPK_LANES(uint32_t, 0)[__builtin_ctz(warp->active)];
    if (warp->active != warp->live || number >= WPK_BLOCK_BARRIERS) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_BARRIER, -1, 0);
        return;
    }
    warp->state = WPK_WARP_WAITS;
    warp->barrier = (int)number;
}

/* The lanes are here: wpk_warp_run() lets them meet. Some of them say nothing about the others. */
static void wait_for_warp(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    (void)in;
    warp->synced += warp->active == warp->live;
}

enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, SHUFFLE_INDEX };

/* operands: result, whether the source was in range, value, by, clamp, members. */
static void shuffle(struct wpk_warp *warp, const struct wpk_ptx_instruction *in, enum shuffle kind)
{
    const uint32_t_lane *value = WPK_LANES(uint32_t, 2), *by = WPK_LANES(uint32_t, 3);
    const uint32_t_lane *clamp = WPK_LANES(uint32_t, 4);
    uint32_t out[WPK_WARP_LANES] = {0}, in_range = 0, defined = warp->defined[in->operand[2].reg];
    for (uint32_t lane = 0; lane < WPK_WARP_LANES; lane++) {
        uint32_t most = clamp[lane] & 31, segment = clamp[lane] >> 8 & 31, step = by[lane] & 31;
        uint32_t last = (lane & segment) | (most & ~segment), first = lane & segment;
        uint32_t from = kind == SHUFFLE_UP     ? lane - step
                        : kind == SHUFFLE_DOWN ? lane + step
                        : kind == SHUFFLE_XOR  ? lane ^ step
                                               : first | (step & ~segment);
        bool inside = kind == SHUFFLE_UP ? (int)from >= (int)last : from <= last;
        from = inside ? from : lane;
        out[lane] = value[from & 31];
        warp->undefined |= (~(defined & warp->active) >> (from & 31) & 1) << lane;
        in_range |= (uint32_t)inside << lane;
    }
    warp->undefined |= ~warp->defined[in->operand[3].reg] | ~warp->defined[in->operand[4].reg];
    wpk_lanes_put_32(warp, &in->operand[0], out);
    wpk_lanes_put_predicate(warp, &in->operand[1], in_range);
}

#define SHUFFLE(name, kind)                                                                        \
    static void name(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)                  \
    {                                                                                              \
        shuffle(warp, in, kind);                                                                   \
    }
SHUFFLE(shuffle_up, SHUFFLE_UP)
SHUFFLE(shuffle_down, SHUFFLE_DOWN)
SHUFFLE(shuffle_xor, SHUFFLE_XOR)
SHUFFLE(shuffle_index, SHUFFLE_INDEX)

/* operands: result, predicate, members. */
static uint32_t vote(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint32_t undefined = warp->active & ~warp->defined[in->operand[1].reg];
    if (undefined != 0) {
        wpk_block_fault(warp, in, WPK_KERNEL_FAULT_UNDEFINED, __builtin_ctz(undefined), 0);
    }
    return wpk_lanes_predicate(warp, &in->operand[1]) & warp->active;
}

static void vote_all(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    bool all = vote(warp, in) == warp->active;
    wpk_lanes_put_predicate(warp, &in->operand[0], all ? WPK_LANES_ALL : 0);
}

static void vote_any(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    wpk_lanes_put_predicate(warp, &in->operand[0], vote(warp, in) != 0 ? WPK_LANES_ALL : 0);
}

static void put_all(struct wpk_warp *warp, const struct wpk_ptx_instruction *in, uint32_t value)
{
    uint32_t out[WPK_WARP_LANES];
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        out[lane] = value;
    }
    wpk_lanes_put_32(warp, &in->operand[0], out);
}

static void vote_ballot(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    put_all(warp, in, vote(warp, in));
}

static void active_mask(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    put_all(warp, in, warp->active);
}

const struct wpk_ptx_operation wpk_ptx_controls[] = {
    {"bar", "", WPK_PTX_PRED, wait_for_block, "=u!"},
    {"barrier", "", WPK_PTX_PRED, wait_for_block, "=u!"},
    {"bar", "warp", WPK_PTX_PRED, wait_for_warp, "=u&"},
    {"shfl", "up", WPK_PTX_B32, shuffle_up, "dp=duuu~&"},
    {"shfl", "down", WPK_PTX_B32, shuffle_down, "dp=duuu~&"},
    {"shfl", "bfly", WPK_PTX_B32, shuffle_xor, "dp=duuu~&"},
    {"shfl", "idx", WPK_PTX_B32, shuffle_index, "dp=duuu~&"},
    {"vote", "all", WPK_PTX_PRED, vote_all, "p=pu&"},
    {"vote", "any", WPK_PTX_PRED, vote_any, "p=pu&"},
    {"vote", "ballot", WPK_PTX_B32, vote_ballot, "d=pu&"},
    {"activemask", "", WPK_PTX_B32, active_mask, "d="},
    {"trap", "", WPK_PTX_PRED, trap, "="},
    {"membar", "", WPK_PTX_PRED, wpk_ptx_fence, "="},
    {"fence", "", WPK_PTX_PRED, wpk_ptx_fence, "="},
    {"griddepcontrol", "", WPK_PTX_PRED, wpk_ptx_nothing, "="},
    {0},
};
