/* SPDX-License-Identifier: Apache-2.0 */
/* Constructed candidates: those that an expert of the machine would try first.
 *
 * Register tiles are ranked by the target's rules; profiles (profile.h) say which of them, and how
 * the other genes (orders, splits of the reduction, blocks and places) are tried in turn. */
#include "search/back_end.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/variant.h"
#include "target/cpu/profile.h"
#include "target/cpu/register_tile.h"
#include "target/cpu/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LAZY_VARIANTS_MAX 16 /* of many combinations, those that candidates are constructed for */

static void set_number(const struct wpk_variant *variant, int gene, int64_t value,
                       struct wpk_candidate *out)
{
    if (gene >= 0) {
        out->gene[gene] = (uint8_t)wpk_gene_floor(&variant->genes[gene], value);
    }
}

static void set_tile(const struct wpk_variant *variant, int g, const struct wpk_register_tile *tile,
                     struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = wpk_root_of(variant, g);
    wpk_genes_set(variant, slots->vec, tile->vec, out);
    set_number(variant, slots->lanes, tile->lanes, out);
    for (int a = 0; a < root->rank; a++) {
        set_number(variant, slots->tile[a], tile->size[a], out);
    }
    bool own = tile->vec >= 0 && wpk_register_tile_leaves_out(variant, g, tile);
    wpk_genes_set(variant, slots->tail, own ? 1 : WPK_GENE_ALL, out);
}

/* ---- the rest of a nest */

/* The reduction axis `axis` innermost, the others as written. False if no order is like that. */
static bool set_innermost(const struct wpk_variant *variant, int g, int axis,
                          struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    int gene = s->slots[g].red;
    for (int i = 0; gene >= 0 && i < variant->genes[gene].choice_count; i++) {
        struct wpk_candidate attempt = *out;
        struct wpk_decisions d;
        attempt.gene[gene] = (uint8_t)i;
        wpk_genes_read(variant, &attempt, g, &d);
        bool sorted = d.red[d.red_count - 1] == axis;
        for (int k = 1; k + 1 < d.red_count; k++) {
            sorted = sorted && d.red[k] > d.red[k - 1];
        }
        if (sorted) {
            out->gene[gene] = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static void set_reduction(const struct wpk_variant *variant, int g,
                          const struct wpk_reducing *reducing, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    if (slots->sum >= 0) { /* the largest blocks: the space has those that are accurate enough */
        out->gene[slots->sum] = (uint8_t)(variant->genes[slots->sum].choice_count - 1);
    }
    wpk_genes_set(variant, slots->panel, WPK_GENE_ALL, out);
    if (slots->split >= 0) {
        wpk_genes_set(variant, slots->split, WPK_GENE_ALL, out);
        set_number(variant, slots->unroll, 1, out);
        wpk_genes_set(variant, slots->split, reducing->split, out);
    }
    if (reducing->innermost) {
        struct wpk_decisions d;
        wpk_genes_read(variant, out, g, &d);
        (void)set_innermost(variant, g, d.split_axis, out);
    }
}

/* The loop of a window along which neighbours in the tile share vectors is written out, so that
 * they do. */
static void set_window(const struct wpk_variant *variant, const struct wpk_space_options *options,
                       int g, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    struct wpk_candidate attempt = *out;
    struct wpk_register_window window;
    struct wpk_decisions d;
    wpk_genes_read(variant, out, g, &d);
    if (!wpk_register_window_find(variant, g, d.vec, d.tile, &window) ||
        (d.red_count > 1 ? !set_innermost(variant, g, window.reduction, &attempt)
                         : d.red_count == 0 || d.red[0] != window.reduction)) {
        return;
    }
    set_number(variant, s->slots[g].unroll, window.terms, &attempt);
    wpk_genes_read(variant, &attempt, g, &d);
    if (wpk_group_is_legal(variant, options, g, &d, NULL)) {
        *out = attempt;
    }
}

/* Blocks of the first axis with several tiles, of a few tiles each, so that what is fused into the
 * block is used soon after it was computed.
 *   unit  tiles: in a block; 0: no blocks */
static void set_blocks(const struct wpk_variant *variant, int g, int64_t tiles,
                       struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = wpk_root_of(variant, g);
    struct wpk_decisions d;
    wpk_genes_read(variant, out, g, &d);
    for (int a = 0; a < root->rank; a++) {
        wpk_genes_set(variant, slots->block[a], WPK_GENE_ALL, out);
    }
    for (int i = 0; i < d.order_count && tiles > 0; i++) {
        int a = d.outer[i];
        if (a != d.vec && slots->block[a] >= 0 && wpk_tile_count(root, &d, a) > 1) {
            set_number(variant, slots->block[a], tiles, out);
            return;
        }
    }
}

static int64_t contraction_bytes(const struct wpk_variant *variant, const struct wpk_stage *stage)
{
    const struct wpk_program *program = &variant->program;
    int64_t bytes = 0;
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        const struct wpk_tensor *tensor = &program->tensors[load.node->tensor];
        bytes += wpk_tensor_elements(tensor) * (int64_t)wpk_dtype_size(tensor->dtype);
    }
    return bytes;
}

/* The axis with the most tiles, the lanes' apart, or -1. */
static int find_longest(const struct wpk_variant *variant, int g, const struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    struct wpk_decisions d;
    int best = -1;
    int64_t most = 1;
    wpk_genes_read(variant, out, g, &d);
    for (int i = 0; i < d.order_count; i++) {
        int a = d.outer[i];
        int64_t tiles = wpk_tile_count(wpk_root_of(variant, g), &d, a);
        if (a != d.vec && s->slots[g].block[a] >= 0 && tiles > most) {
            most = tiles;
            best = a;
        }
    }
    return best;
}

/* Let the loop over tiles of `axis` be the outermost. False if no order is like that. */
static bool set_outermost(const struct wpk_variant *variant, int g, int axis,
                          struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    int gene = s->slots[g].outer;
    for (int i = 0; gene >= 0 && i < variant->genes[gene].choice_count; i++) {
        if (wpk_order_axis(variant->genes[gene].choice[i].value, 0) == axis) {
            out->gene[gene] = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* Compute what group `g` reads inside its outermost loop, over blocks of one tile, if that is
 * legal: an operand that exceeds half of the second cache would else come from the next one. */
static void set_producers(const struct wpk_variant *variant,
                          const struct wpk_space_options *options, int g, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    struct wpk_candidate attempt = *out;
    int axis = find_longest(variant, g, out);
    bool placed = false;
    if (axis < 0 || contraction_bytes(variant, wpk_contraction_of(variant, &s->plan.group[g])) <=
                        options->target.machine.cache_bytes[1] / 2) {
        return;
    }
    for (int a = 0; a < wpk_root_of(variant, g)->rank; a++) {
        wpk_genes_set(variant, slots->block[a], a == axis ? 1 : WPK_GENE_ALL, &attempt);
    }
    (void)set_outermost(variant, g, axis, &attempt);
    for (int h = 0; h < g; h++) {
        if (s->plan.feeds[h][g] && s->slots[h].at >= 0) {
            wpk_genes_set(variant, s->slots[h].at, wpk_place(g, WPK_LEVEL_BLOCK), &attempt);
            placed = true;
        }
    }
    if (placed && wpk_placement_is_legal(variant, options, &attempt, NULL)) {
        *out = attempt;
    }
}

/* Producers go into the blocks of the last group if it has any, else to the root. */
static void set_places(const struct wpk_variant *variant, const struct wpk_space_options *options,
                       bool fused, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    int last = s->plan.group_count - 1;
    for (int g = 0; g < last; g++) {
        wpk_genes_set(variant, s->slots[g].at,
                      fused ? wpk_place(last, WPK_LEVEL_BLOCK) : wpk_place(-1, WPK_LEVEL_ROOT),
                      out);
    }
    if (fused && !wpk_placement_is_legal(variant, options, out, NULL)) {
        for (int g = 0; g < last; g++) {
            wpk_genes_set(variant, s->slots[g].at, wpk_place(-1, WPK_LEVEL_ROOT), out);
        }
        for (int g = 1; g < last; g++) {
            if (s->plan.group[g].reuse) {
                set_producers(variant, options, g, out);
            }
        }
    }
}

/* ---- panels */

static bool divides(const struct wpk_stage *root, const struct wpk_group *group,
                    const struct wpk_register_tile *tile)
{
    bool all = true;
    for (int a = 0; a < root->rank; a++) {
        all = all && (!wpk_has_loop(group, root, a) || root->axes[a].extent % tile->size[a] == 0);
    }
    return all;
}

/* Blocks whose rows, of `depth` elements each, take half of `bytes`; along the vector axis all of
 * it, or if `results` as much as lets the results take the other half. True if some axis is cut. */
static bool set_row_blocks(const struct wpk_variant *variant, int g, int64_t bytes, int64_t depth,
                           bool results, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = wpk_root_of(variant, g);
    struct wpk_decisions d;
    bool cut = false;
    wpk_genes_read(variant, out, g, &d);
    int64_t half = bytes / 2 / 4, rows = 1;
    for (int i = d.order_count - 1; i >= 0; i--) {
        int a = d.outer[i];
        int64_t most = half / depth / rows / d.tile[a];
        if (a != d.vec && slots->block[a] >= 0) {
            wpk_genes_set(variant, slots->block[a], WPK_GENE_ALL, out);
            if (most < wpk_tile_count(root, &d, a)) {
                set_number(variant, slots->block[a], most, out);
                cut = true;
            }
            wpk_genes_read(variant, out, g, &d);
            rows *= d.tile[a] * wpk_block_tiles(root, &d, a);
        }
    }
    if (d.vec >= 0 && slots->block[d.vec] >= 0) {
        wpk_genes_set(variant, slots->block[d.vec], WPK_GENE_ALL, out);
        if (results && half / rows / d.tile[d.vec] < wpk_tile_count(root, &d, d.vec)) {
            set_number(variant, slots->block[d.vec], half / rows / d.tile[d.vec], out);
        }
    }
    return cut;
}

/* Where the operands of a contraction exceed the last cache: the rows of a block, copied, take a
 * quarter of it while all tiles along the vector axis pass, each of which is in the second cache
 * while the block's rows pass. */
static void set_last_cache_blocks(const struct wpk_variant *variant,
                                  const struct wpk_machine *machine, int g,
                                  struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *stage = wpk_contraction_of(variant, &s->plan.group[g]);
    int64_t last = machine->cache_bytes[WPK_CACHES - 1];
    int64_t depth = (int64_t)wpk_stage_terms(stage);
    struct wpk_candidate blocked = *out;
    if (contraction_bytes(variant, stage) > last &&
        set_row_blocks(variant, g, last / 2, depth, false, &blocked)) {
        wpk_tile_order_set(variant, machine, g, WPK_TILE_ORDER_VECTOR, &blocked);
        for (int i = 0; i < slots->pack_count; i++) {
            wpk_genes_set(variant, slots->pack[i], 1, &blocked);
        }
        *out = blocked;
    }
}

/* Panels of the reduction, the middle size first: a tile's strip of one operand stays in the first
 * cache while all rows of a block pass, which stay in the second.
 *   source  Goto & van de Geijn, Anatomy of high-performance matrix multiplication, 2008, 4 */
static void set_panels(const struct wpk_variant *variant, const struct wpk_machine *machine, int g,
                       const struct wpk_register_tiles *tiles, const struct wpk_profile *profile,
                       struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    int sizes = slots->panel < 0 ? 0 : variant->genes[slots->panel].choice_count - 1;
    struct wpk_decisions d;
    int seen = 0;
    for (int r = 0; r < tiles->count && sizes > 0; r++) {
        if (!divides(wpk_root_of(variant, g), &s->plan.group[g], &tiles->tile[r]) ||
            seen++ < profile->panel_tile) {
            continue;
        }
        set_tile(variant, g, &tiles->tile[r], out);
        out->gene[slots->panel] = (uint8_t)((sizes / 2 + profile->panel_size) % sizes);
        wpk_tile_order_set(variant, machine, g, WPK_TILE_ORDER_VECTOR, out);
        wpk_genes_read(variant, out, g, &d);
        set_row_blocks(variant, g, machine->cache_bytes[1], d.split, profile->paneling->results,
                       out);
        wpk_genes_set(variant, slots->at, wpk_place(-1, WPK_LEVEL_ROOT), out);
        for (int i = 0; i < slots->pack_count; i++) {
            wpk_genes_set(variant, slots->pack[i], profile->paneling->copied ? WPK_PACK_PANEL : 0,
                          out);
        }
        return;
    }
}

/* True if the lanes read an operand with a stride. */
static bool is_read_across(const struct wpk_variant *variant, int g, int slot, int vec)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_node *load = &program->nodes[s->slots[g].pack_load[slot]];
    int rank = program->tensors[load->tensor].rank;
    for (int d = 0; d + 1 < rank; d++) {
        int axis = wpk_index_axis(program, load->index[d]);
        if (vec >= 0 && axis >= 0 && axis < program->stages[member->stage].rank &&
            member->root_axis[axis] == vec) {
            return true;
        }
    }
    return false;
}

/* All subsets of the operands are copied in turn, first those that the lanes read with a stride. */
static void construct_pack(const struct wpk_variant *variant, int g,
                           const struct wpk_profile *profile, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    struct wpk_decisions d;
    wpk_genes_read(variant, out, g, &d);
    for (int i = 0, bit = 0; i < slots->pack_count; i++) {
        const struct wpk_gene *gene = &variant->genes[slots->pack[i]];
        if (wpk_gene_find(gene, WPK_PACK_HALVES) >= 0) {
            wpk_genes_set(variant, slots->pack[i], profile->halves ? WPK_PACK_HALVES : 1, out);
        } else if (gene->choice_count > 1) {
            int first = is_read_across(variant, g, i, d.vec);
            wpk_genes_set(variant, slots->pack[i], first ^ (int)(profile->copies >> bit++ & 1),
                          out);
        }
    }
}

/* An instruction that adds several terms is used where it is legal, innermost of all axes. */
static void set_dot(const struct wpk_space *space, int g, struct wpk_candidate *out)
{
    const struct wpk_variant *variant = &space->variants[out->variant];
    const struct wpk_structure *s = variant->plan;
    int gene = s->slots[g].dot;
    for (int i = 0; gene >= 0 && i < variant->genes[gene].choice_count; i++) {
        struct wpk_candidate attempt = *out;
        int64_t axis = variant->genes[gene].choice[i].value;
        if (axis == WPK_GENE_ALL) {
            continue;
        }
        (void)set_innermost(variant, g, (int)axis, &attempt);
        attempt.gene[gene] = (uint8_t)i;
        set_number(variant, s->slots[g].unroll, 1, &attempt);
        for (int k = 0; k < s->slots[g].pack_count; k++) {
            if (!wpk_cpu_is_legal_group(space, g, &attempt, NULL)) {
                wpk_genes_set(variant, s->slots[g].pack[k], 1, &attempt);
            }
        }
        if (wpk_cpu_is_legal_group(space, g, &attempt, NULL)) {
            *out = attempt;
            wpk_genes_set_back_end(variant, WPK_BACK_END_c, out);
            return;
        }
    }
}

/* Candidate number `n` of a variant. */
static bool construct_one(const struct wpk_space *space, int v,
                          const struct wpk_register_tiles *tiles, int n, struct wpk_candidate *out)
{
    const struct wpk_variant *variant = &space->variants[v];
    const struct wpk_structure *s = variant->plan;
    const struct wpk_machine *machine = &space->options.target.machine;
    struct wpk_profile profile;
    int last = s->plan.group_count - 1;
    wpk_profile_get(n, &profile);
    memset(out, 0, sizeof(*out));
    out->variant = v;
    out->gene_count = variant->gene_count;
    for (int g = 0; g <= last; g++) {
        const struct wpk_group *group = &s->plan.group[g];
        if (tiles[g].count == 0) {
            return false;
        }
        int pick = group->reuse ? profile.tile : profile.tile_plain;
        set_tile(variant, g, &tiles[g].tile[pick % tiles[g].count], out);
        wpk_tile_order_set(variant, machine, g, profile.tile_order, out);
        if (group->contraction >= 0) {
            set_reduction(variant, g, profile.reducing, out);
            set_window(variant, &space->options, g, out);
        }
        construct_pack(variant, g, &profile, out);
        if (s->slots[g].outer >= 0 || s->slots[g].inner >= 0) {
            set_blocks(variant, g, g == last && last > 0 ? profile.block_last : profile.block, out);
        }
        if (group->contraction >= 0 && profile.blocking->last_cache) {
            set_last_cache_blocks(variant, machine, g, out);
        }
    }
    set_places(variant, &space->options, profile.fused, out);
    for (int g = 0; g <= last && profile.blocking->panels; g++) {
        set_panels(variant, machine, g, &tiles[g], &profile, out);
    }
    for (int g = 0; g <= last; g++) {
        set_dot(space, g, out);
    }
    int loops = profile.parallel;
    for (int g = 0; g < s->plan.group_count; g++) {
        set_number(variant, s->slots[g].par, loops, out);
    }
    return wpk_space_is_legal(space, out);
}

/* True if the schedule is a new one. Different candidates may have equal schedules.
 *   shape   key [count + 1], of the others, which gets this one's */
static bool is_new(const struct wpk_space *space, uint64_t *key, int count,
                   const struct wpk_candidate *one)
{
    key[count] = wpk_space_key(space, one);
    for (int i = 0; i < count; i++) {
        if (key[i] == key[count]) {
            return false;
        }
    }
    return true;
}

/* All others are timed beside the first one, which should not be a slow one. */
static void put_fastest_first(const struct wpk_space *space, struct wpk_candidate *out, int count)
{
    int fastest = 0;
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        double seconds = INFINITY;
        if (wpk_space_bound(space, &out[i], &seconds) == WPK_OK && seconds < least) {
            least = seconds;
            fastest = i;
        }
    }
    if (fastest > 0) {
        struct wpk_candidate first = out[fastest];
        out[fastest] = out[0];
        out[0] = first;
    }
}

/* True if the variant's program differs from those of the variants chosen before. */
static bool is_new_program(const struct wpk_space *space, const int *chosen, int count, int v)
{
    for (int i = 0; i < count && space->lazy; i++) {
        if (space->variants[chosen[i]].identity == space->variants[v].identity) {
            return false;
        }
    }
    return true;
}

/* Those to begin with: all, or of many combinations those with the fewest operations.
 *   shape   out [WPK_VARIANTS_MAX]; *chosen says how many there are
 *   errors  WPK_ENOMEM */
static wpk_err choose_variants(const struct wpk_space *space, int *out, int *chosen)
{
    int count = 0, most = space->lazy ? LAZY_VARIANTS_MAX : WPK_VARIANTS_MAX;
    bool taken[WPK_VARIANTS_MAX] = {false};
    while (count < most) {
        int best = -1;
        for (int v = 0; v < space->variant_count; v++) {
            bool fewer = best < 0 || (space->lazy && space->variants[v].operations <
                                                         space->variants[best].operations);
            best = !taken[v] && fewer ? v : best;
        }
        if (best < 0) {
            break;
        }
        taken[best] = true;
        if (wpk_space_variant(space, best) == NULL) {
            if (wpk_space_variant_error(space, best) == WPK_ENOMEM) {
                return WPK_ENOMEM;
            }
        } else if (is_new_program(space, out, count, best) && !wpk_variant_is_short(space, best)) {
            out[count++] = best;
        }
    }
    *chosen = count;
    return WPK_OK;
}

static bool has_dot(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    const struct wpk_structure *s = space->variants[candidate->variant].plan;
    bool some = false;
    for (int g = 0; g < s->plan.group_count; g++) {
        struct wpk_decisions d;
        wpk_genes_read(&space->variants[candidate->variant], candidate, g, &d);
        some = some || d.dot >= 0;
    }
    return some;
}

/* Each of the first ones by every back end; the last ones make room. Where one back end alone has
 * an instruction that fits, the candidates stay that one's. */
static void set_back_ends(const struct wpk_space *space, struct wpk_candidate *out, int count)
{
    int choices = 0;
    for (int i = 0; i < count; i++) {
        if (has_dot(space, &out[i])) {
            return;
        }
    }
    for (int i = 0; wpk_back_end_name(i) != NULL; i++) {
        choices += (int)(space->options.back_ends >> i & 1);
    }
    for (int i = count - 1; i >= 0 && choices > 1; i--) {
        out[i] = out[i / choices];
        const struct wpk_structure *s = space->variants[out[i].variant].plan;
        out[i].gene[s->by] = (uint8_t)(i % choices);
    }
}

wpk_err wpk_cpu_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                          int *filled)
{
    int chosen[WPK_VARIANTS_MAX], count = 0, variants = 0;
    wpk_err err = choose_variants(space, chosen, &variants);
    *filled = 0;
    if (err != WPK_OK || variants == 0) {
        return err;
    }
    struct wpk_register_tiles *all =
        calloc((size_t)variants * WPK_GROUPS_MAX, sizeof(struct wpk_register_tiles));
    uint64_t *key = calloc((size_t)max + 1, sizeof(*key));
    if (all == NULL || key == NULL) {
        free(all);
        free(key);
        return WPK_ENOMEM;
    }
    for (int i = 0; i < variants; i++) {
        const struct wpk_variant *variant = &space->variants[chosen[i]];
        const struct wpk_structure *s = variant->plan;
        for (int g = 0; g < s->plan.group_count; g++) {
            wpk_register_tiles_rank(variant, &space->options, g, &all[i * WPK_GROUPS_MAX + g]);
        }
    }
    for (int n = 0; n < 8 * max && count < max; n++) {
        for (int i = 0; i < variants && count < max; i++) {
            struct wpk_candidate one;
            if (construct_one(space, chosen[i], &all[i * WPK_GROUPS_MAX], n, &one) &&
                is_new(space, key, count, &one)) {
                out[count++] = one;
            }
        }
    }
    free(all);
    free(key);
    put_fastest_first(space, out, count);
    set_back_ends(space, out, count);
    *filled = count;
    return WPK_OK;
}
