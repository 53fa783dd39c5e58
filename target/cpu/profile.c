/* SPDX-License-Identifier: Apache-2.0 */
#include "target/cpu/profile.h"

#include "search/reuse.h"

#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct wpk_blocking blockings[] = {
    /* operands that fit the second cache need no blocks, and loops cost the least */
    {.name = "whole"},
    /* a long reduction is cut, so that a tile's strip stays in the first cache */
    {.name = "panels", .panels = true},
    /* operands beyond the last cache are read from memory once a block */
    {.name = "last-cache", .last_cache = true},
    /* what producers write is read again while it is in the first cache */
    {.name = "small", .small = true, .last_cache = true},
};

/* Splits are cache lines of f32: the more, the fewer passes over the results, and the less of the
 * operands stays in the first cache. With the largest axis innermost an operand is read in a row;
 * as written, a window's elements are, whose neighbours share loads. */
static const struct wpk_reducing reducings[] = {
    {"all", WPK_GENE_ALL, true},
    {"by 16", 16, true},
    {"by 32", 32, true},
    {"by 64", 64, true},
    {"all as written", WPK_GENE_ALL, false},
    {"by 16 as written", 16, false},
    {"by 32 as written", 32, false},
};

static const struct wpk_paneling panelings[] = {
    {"copied", true, false},   /* a panel is read in the order in which it lies */
    {"in place", false, true}, /* what copies would take of the cache is the results' */
};

/* The tiles that the rules rank first differ little: a band of them meets every blocking before the
 * next band begins. The order of tiles alternates with the rank, so that the two best tiles have
 * one each. */
#define TILES_IN_BAND 5
#define BANDS 3
#define BAND_TURNS (TILES_IN_BAND * COUNT(blockings))

/* A group without reuse depends on its tile less: three are tried, for three turns each. */
#define PLAIN_TILES 3
#define PLAIN_TURNS 3

/* Tiles in a block: 1 takes the least memory, powers of two take more, and 3 and 7 divide numbers
 * of tiles that these do not. An axis that lacks a size gets the next smaller one. */
static const int64_t blocks_last[] = {1, 2, 4, 3, 7, 8};
static const int64_t blocks[] = {1, 4, 7};

/* Most programs gain if producers are computed in the blocks that read them. In one turn of three
 * producers come first: where blocks overlap, nothing is computed twice. */
#define FUSED_TURNS 3
/* One parallel loop, or two where the outer one has few iterations. */
#define PARALLEL_LOOPS 2
/* Constants are packed in halves while all tiles of a band pass, then whole. */
#define HALVES_TURNS TILES_IN_BAND
/* Panels have their own turns: three tiles, then the next size; each way of reading for two. */
#define PANEL_TILES 3
#define PANELING_TURNS 2

void wpk_profile_get(int n, struct wpk_profile *out)
{
    const struct wpk_blocking *blocking = &blockings[n % COUNT(blockings)];
    int round = n / COUNT(blockings);
    WPK_ASSERT(n >= 0);
    *out = (struct wpk_profile){
        .blocking = blocking,
        .reducing = &reducings[n % COUNT(reducings)],
        .paneling = &panelings[round / PANELING_TURNS % COUNT(panelings)],
        .tile = n % TILES_IN_BAND + TILES_IN_BAND * (n / BAND_TURNS % BANDS),
        .tile_plain = n / PLAIN_TURNS % PLAIN_TILES,
        .tile_order = n % TILES_IN_BAND % 2 == 1 ? WPK_TILE_ORDER_VECTOR : WPK_TILE_ORDER_TRAFFIC,
        .block_last = blocks_last[n % COUNT(blocks_last)],
        .block = blocking->small ? blocks[n / 2 % COUNT(blocks)] : 0,
        .copies = (unsigned)n,
        .halves = n / HALVES_TURNS % 2 == 0,
        .fused = n % FUSED_TURNS != FUSED_TURNS - 1,
        .parallel = 1 + n % PARALLEL_LOOPS,
        .panel_tile = round % PANEL_TILES,
        .panel_size = round / PANEL_TILES,
    };
}

/* True if the tile loops have the vector axis outermost, and all other axes in the order of the
 * program. */
static bool begins_with_vector(const struct wpk_decisions *d)
{
    bool sorted = d->vec < 0 || d->inner[0] == d->vec;
    for (int k = 0, previous = -1; k < d->order_count; k++) {
        if (d->inner[k] != d->vec) {
            sorted = sorted && d->inner[k] > previous;
            previous = d->inner[k];
        }
    }
    return sorted;
}

/* Bytes of a load's tensor that the loops over tiles read from beyond a cache: what a loop's body
 * reads is read again by each loop that the load does not depend on, where the cache does not hold
 * it. */
static double count_traffic(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                            const struct wpk_node *load, int64_t cache_bytes)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    bool used[WPK_AXES_MAX] = {false}, reads[WPK_RANK_MAX] = {false};
    double held = (double)wpk_tensor_elements(tensor) * (double)wpk_dtype_size(tensor->dtype);
    for (int dim = 0; dim < tensor->rank; dim++) {
        (void)wpk_reuse_mark_index(program, load->index[dim], used);
    }
    for (int a = 0; a < stage->rank; a++) {
        if (used[a] && member->root_axis[a] >= 0) {
            reads[member->root_axis[a]] = true;
        }
    }
    for (int k = 0; k < d->order_count; k++) {
        int a = d->inner[k];
        held /= reads[a] ? (double)wpk_tile_count(wpk_root_of(variant, g), d, a) : 1;
    }
    double bytes = held;
    for (int k = d->order_count - 1; k >= 0; k--) {
        int a = d->inner[k];
        double times = (double)wpk_tile_count(wpk_root_of(variant, g), d, a);
        bytes *= reads[a] || held > (double)cache_bytes ? times : 1;
        held *= reads[a] ? times : 1;
    }
    return bytes;
}

void wpk_tile_order_set(const struct wpk_variant *variant, const struct wpk_machine *machine, int g,
                        enum wpk_tile_order wanted, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    int gene = s->slots[g].inner;
    double least = HUGE_VAL;
    struct wpk_candidate best = *out;
    for (int i = 0; gene >= 0 && i < variant->genes[gene].choice_count; i++) {
        struct wpk_candidate attempt = *out;
        struct wpk_decisions d;
        double cost = 1;
        attempt.gene[gene] = (uint8_t)i;
        wpk_genes_read(variant, &attempt, g, &d);
        if (wanted == WPK_TILE_ORDER_VECTOR) {
            cost = begins_with_vector(&d) ? 0 : 1;
        } else if (s->plan.group[g].reuse) {
            /* Of a contraction, for the order of the tile loops that `d` has. */
            const struct wpk_stage *stage = wpk_contraction_of(variant, &s->plan.group[g]);
            cost = 0;
            for (struct wpk_loads load = wpk_loads_of(&variant->program, stage);
                 wpk_loads_next(&load);) {
                cost += count_traffic(variant, &d, g, load.node, machine->cache_bytes[0] / 2);
            }
        }
        if (wanted == WPK_TILE_ORDER_TRAFFIC && d.vec >= 0 && d.inner[d.order_count - 1] != d.vec) {
            cost *= 1.0001; /* of equal orders the one with the vector axis innermost */
        }
        if (cost < least) {
            least = cost;
            best = attempt;
        }
    }
    *out = best;
}
