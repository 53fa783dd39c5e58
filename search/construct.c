/* SPDX-License-Identifier: Apache-2.0 */
/* Constructed candidates: those that an expert of the machine would try first.
 *
 * Register tiles are ranked by the target's rules. The other genes (orders, splits of the
 * reduction, blocks and places) take turns through a few sizes that keep reused data small. */
#include "search/gene_list.h"
#include "search/genes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECIPES_MAX 512
#define LAZY_VARIANTS_MAX 16 /* of many combinations, those that candidates are constructed for */

/* One choice of register tile. */
struct recipe {
    int vec;
    int lanes;
    int64_t tile[WPK_RANK_MAX];
    double score;
};

struct recipes {
    struct recipe recipe[RECIPES_MAX];
    int count;
};

static const struct wpk_stage *root_of(const struct wpk_variant *variant, int g)
{
    const struct wpk_structure *s = variant->plan;
    return &variant->program.stages[s->plan.group[g].root];
}

static void set_number(const struct wpk_variant *variant, int gene, int64_t value,
                       struct wpk_candidate *out)
{
    if (gene >= 0) {
        out->gene[gene] = (uint8_t)wpk_gene_floor(&variant->genes[gene], value);
    }
}

static void set_value(const struct wpk_variant *variant, int gene, int64_t value,
                      struct wpk_candidate *out)
{
    int choice = gene < 0 ? -1 : wpk_gene_find(&variant->genes[gene], value);
    if (choice >= 0) {
        out->gene[gene] = (uint8_t)choice;
    }
}

static double coverage(int64_t extent, int64_t tile)
{
    int64_t count = (extent + tile - 1) / tile;
    return (double)extent / (double)(count * tile);
}

/* ---- register tiles */

/* Does the contraction gather its vectors from memory one value at a time? */
static bool reads_strided(const struct wpk_variant *variant, const struct wpk_group *group, int vec)
{
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &variant->program.stages[member->stage];
    for (int a = 0; a < stage->rank; a++) {
        if (vec >= 0 && member->root_axis[a] == vec) {
            return wpk_stage_is_strided(variant, stage, a);
        }
    }
    return false;
}

static double score_tile(const struct wpk_variant *variant, const struct wpk_space_options *options,
                         int g, const struct recipe *recipe)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = root_of(variant, g);
    struct wpk_tile tile = {
        .reuses = group->reuse, .lanes = recipe->lanes, .covered = 1, .vectors = 1, .points = 1};
    for (int a = 0; a < root->rank; a++) {
        tile.covered *= group->whole[a] ? 1 : coverage(root->axes[a].extent, recipe->tile[a]);
        if (a == recipe->vec) {
            tile.vectors = recipe->tile[a] / recipe->lanes;
        } else {
            tile.points *= recipe->tile[a];
        }
    }
    bool strided = group->reuse && reads_strided(variant, group, recipe->vec);
    tile.loads = tile.vectors * (strided ? recipe->lanes : 1) + tile.points;
    return options->target.rules->construct(&options->target.machine, &tile);
}

static int compare_recipes(const void *a, const void *b)
{
    const struct recipe *x = a, *y = b;
    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }
    return memcmp(x->tile, y->tile, sizeof(x->tile));
}

static void sort_recipes(struct recipes *recipes)
{
    qsort(recipes->recipe, (size_t)recipes->count, sizeof(recipes->recipe[0]), compare_recipes);
}

/* The worse half makes room: the first vector axis alone may have more tiles than fit. */
static void add_recipe(struct recipes *out, const struct recipe *recipe)
{
    if (out->count == RECIPES_MAX) {
        sort_recipes(out);
        out->count /= 2;
    }
    out->recipe[out->count++] = *recipe;
}

/* The two axes beside the vector axis that may have tiles of more than one: the last two with
 * loops. Others keep their smallest tile. */
static int companion_axes(const struct wpk_decisions *d, int vec, int out[2])
{
    int count = 0;
    for (int i = d->order_count - 1; i >= 0 && count < 2; i--) {
        if (d->inner[i] != vec) {
            out[count++] = d->inner[i];
        }
    }
    return count;
}

static void add_recipes_for(const struct wpk_variant *variant,
                            const struct wpk_space_options *options, int g,
                            const struct wpk_decisions *base, struct recipes *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = root_of(variant, g);
    int companion[2] = {-1, -1};
    int companions = companion_axes(base, base->vec, companion);
    const struct wpk_gene *vec_tiles =
        base->vec >= 0 ? &variant->genes[slots->tile[base->vec]] : NULL;
    const struct wpk_gene *first =
        companions > 0 ? &variant->genes[slots->tile[companion[0]]] : NULL;
    const struct wpk_gene *second =
        companions > 1 ? &variant->genes[slots->tile[companion[1]]] : NULL;
    for (int v = 0; v < (vec_tiles == NULL ? 1 : vec_tiles->choice_count); v++) {
        for (int p = 0; p < (first == NULL ? 1 : first->choice_count); p++) {
            for (int q = 0; q < (second == NULL ? 1 : second->choice_count); q++) {
                struct wpk_decisions d = *base;
                struct recipe recipe = {.vec = d.vec, .lanes = d.lanes};
                if (vec_tiles != NULL) {
                    d.tile[d.vec] = vec_tiles->choice[v].value;
                }
                if (first != NULL) {
                    d.tile[companion[0]] = first->choice[p].value;
                }
                if (second != NULL) {
                    d.tile[companion[1]] = second->choice[q].value;
                }
                if (wpk_group_is_legal(variant, options, g, &d, NULL)) {
                    memcpy(recipe.tile, d.tile, (size_t)root->rank * sizeof(d.tile[0]));
                    recipe.score = score_tile(variant, options, g, &recipe);
                    add_recipe(out, &recipe);
                }
            }
        }
    }
}

static void collect_recipes(const struct wpk_variant *variant,
                            const struct wpk_space_options *options, int g, struct recipes *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    struct wpk_candidate blank = {.gene_count = variant->gene_count};
    out->count = 0;
    for (int v = 0; v < variant->genes[slots->vec].choice_count; v++) {
        for (int n = 0; n < variant->genes[slots->lanes].choice_count; n++) {
            struct wpk_decisions base;
            blank.gene[slots->vec] = (uint8_t)v;
            blank.gene[slots->lanes] = (uint8_t)n;
            wpk_genes_read(variant, &blank, g, &base);
            base.unroll = 1;
            base.split = 0;
            base.panel = false;
            add_recipes_for(variant, options, g, &base, out);
        }
    }
    sort_recipes(out);
}

static void set_recipe(const struct wpk_variant *variant, int g, const struct recipe *recipe,
                       struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = root_of(variant, g);
    set_value(variant, slots->vec, recipe->vec, out);
    set_number(variant, slots->lanes, recipe->lanes, out);
    for (int a = 0; a < root->rank; a++) {
        set_number(variant, slots->tile[a], recipe->tile[a], out);
    }
}

/* ---- the rest of a nest */

/* Orders are listed as permutations of the written order: number `which` with the vector axis's
 * loop innermost (0) or outermost (1) of the tile loops, everything else as written. */
static void set_inner_order(const struct wpk_variant *variant, int g, int which,
                            struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    int gene = s->slots[g].inner;
    struct wpk_decisions d;
    if (gene < 0) {
        return;
    }
    wpk_genes_read(variant, out, g, &d);
    for (int i = 0; i < variant->genes[gene].choice_count; i++) {
        struct wpk_candidate attempt = *out;
        struct wpk_decisions e;
        attempt.gene[gene] = (uint8_t)i;
        wpk_genes_read(variant, &attempt, g, &e);
        int vec_at = which == 0 ? e.order_count - 1 : 0;
        bool sorted = d.vec < 0 || e.inner[vec_at] == d.vec;
        for (int k = 0, previous = -1; k < e.order_count; k++) {
            if (e.inner[k] != d.vec) {
                sorted = sorted && e.inner[k] > previous;
                previous = e.inner[k];
            }
        }
        if (sorted) {
            out->gene[gene] = (uint8_t)i;
            return;
        }
    }
}

/* The largest reduction axis innermost, or the written order. */
static void set_reduction(const struct wpk_variant *variant, int g, int which,
                          struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    static const int64_t splits[] = {0, 16, 32, 64};
    if (slots->sum >= 0) { /* the largest blocks: the space has those that are accurate enough */
        out->gene[slots->sum] = (uint8_t)(variant->genes[slots->sum].choice_count - 1);
    }
    set_value(variant, slots->panel, WPK_GENE_ALL, out);
    if (slots->split >= 0) {
        set_value(variant, slots->split, WPK_GENE_ALL, out);
        set_number(variant, slots->unroll, 1, out);
        set_value(variant, slots->split, splits[which % 4], out);
    }
    if (slots->red < 0 || which / 4 % 2 == 1) {
        return;
    }
    for (int i = 0; i < variant->genes[slots->red].choice_count; i++) {
        struct wpk_candidate attempt = *out;
        struct wpk_decisions d;
        attempt.gene[slots->red] = (uint8_t)i;
        wpk_genes_read(variant, &attempt, g, &d);
        bool sorted = d.red[d.red_count - 1] == d.split_axis;
        for (int k = 1; k + 1 < d.red_count; k++) {
            sorted = sorted && d.red[k] > d.red[k - 1];
        }
        if (sorted) {
            out->gene[slots->red] = (uint8_t)i;
            return;
        }
    }
}

/* Blocks of the first axis with several tiles, of a few tiles each, so that what is fused into the
 * block is used soon after it was computed; `which` 0 means no blocks. */
static void set_blocks(const struct wpk_variant *variant, int g, int which,
                       struct wpk_candidate *out)
{
    static const int64_t sizes[] = {0, 1, 2, 4, 3, 7, 8};
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = root_of(variant, g);
    struct wpk_decisions d;
    wpk_genes_read(variant, out, g, &d);
    for (int a = 0; a < root->rank; a++) {
        if (slots->block[a] >= 0) {
            set_value(variant, slots->block[a], WPK_GENE_ALL, out);
        }
    }
    for (int i = 0; i < d.order_count && which > 0; i++) {
        int a = d.outer[i];
        if (a != d.vec && slots->block[a] >= 0 && wpk_tile_count(root, &d, a) > 1) {
            set_number(variant, slots->block[a], sizes[which % 7], out);
            return;
        }
    }
}

/* Producers go into the blocks of the last group if it has any, else to the root. */
static void set_places(const struct wpk_variant *variant, const struct wpk_space_options *options,
                       bool fused, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    int last = s->plan.group_count - 1;
    for (int g = 0; g < last; g++) {
        set_value(variant, s->slots[g].at,
                  fused ? wpk_place(last, WPK_LEVEL_BLOCK) : wpk_place(-1, WPK_LEVEL_ROOT), out);
    }
    if (fused && !wpk_placement_is_legal(variant, options, out, NULL)) {
        for (int g = 0; g < last; g++) {
            set_value(variant, s->slots[g].at, wpk_place(-1, WPK_LEVEL_ROOT), out);
        }
    }
}

static void set_parallel(const struct wpk_variant *variant, int which, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    for (int g = 0; g < s->plan.group_count; g++) {
        set_number(variant, s->slots[g].par, 1 + which % 2, out);
    }
}

/* ---- panels */

static bool divides(const struct wpk_stage *root, const struct wpk_group *group,
                    const struct recipe *recipe)
{
    bool all = true;
    for (int a = 0; a < root->rank; a++) {
        all = all && (!wpk_has_loop(group, root, a) || root->axes[a].extent % recipe->tile[a] == 0);
    }
    return all;
}

/* Blocks whose rows of a panel take half of the second cache; along the vector axis all of it, or
 * as much as lets the results take the other half. */
static void set_panel_blocks(const struct wpk_variant *variant, const struct wpk_machine *machine,
                             int g, int which, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = root_of(variant, g);
    struct wpk_decisions d;
    wpk_genes_read(variant, out, g, &d);
    int64_t half = machine->cache_bytes[1] / 2 / 4, rows = 1;
    for (int i = d.order_count - 1; i >= 0; i--) {
        int a = d.outer[i];
        int64_t most = half / d.split / rows / d.tile[a];
        if (a != d.vec && slots->block[a] >= 0) {
            set_value(variant, slots->block[a], WPK_GENE_ALL, out);
            if (most < wpk_tile_count(root, &d, a)) {
                set_number(variant, slots->block[a], most, out);
            }
            wpk_genes_read(variant, out, g, &d);
            rows *= d.tile[a] * wpk_block_tiles(root, &d, a);
        }
    }
    if (d.vec >= 0 && slots->block[d.vec] >= 0) {
        set_value(variant, slots->block[d.vec], WPK_GENE_ALL, out);
        if (which % 2 == 1 && half / rows / d.tile[d.vec] < wpk_tile_count(root, &d, d.vec)) {
            set_number(variant, slots->block[d.vec], half / rows / d.tile[d.vec], out);
        }
    }
}

/* Panels of the reduction, the middle size first: a tile's strip of one operand stays in the first
 * cache while all rows of a block pass, which stay in the second.
 *   source  Goto & van de Geijn, Anatomy of high-performance matrix multiplication, 2008, 4 */
static void set_panels(const struct wpk_variant *variant, const struct wpk_machine *machine, int g,
                       const struct recipes *recipes, int which, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    int sizes = slots->panel < 0 ? 0 : variant->genes[slots->panel].choice_count - 1;
    int seen = 0;
    for (int r = 0; r < recipes->count && sizes > 0; r++) {
        if (!divides(root_of(variant, g), &s->plan.group[g], &recipes->recipe[r]) ||
            seen++ < which % 3) {
            continue;
        }
        set_recipe(variant, g, &recipes->recipe[r], out);
        out->gene[slots->panel] = (uint8_t)((sizes / 2 + which / 3) % sizes);
        set_inner_order(variant, g, 1, out);
        set_panel_blocks(variant, machine, g, which / 2, out);
        set_value(variant, slots->at, wpk_place(-1, WPK_LEVEL_ROOT), out);
        for (int i = 0; i < slots->pack_count; i++) {
            set_value(variant, slots->pack[i], which % 4 < 2 ? WPK_PACK_PANEL : 0, out);
        }
        return;
    }
}

/* An operand is copied at every second step. A constant, which is always copied, is copied
 * in halves for five steps and whole for the next five, where halves are offered. */
static void construct_pack(const struct wpk_variant *variant, int gene, int n, int operand,
                           struct wpk_candidate *out)
{
    bool large = wpk_gene_find(&variant->genes[gene], WPK_PACK_HALVES) >= 0;
    int64_t part = n / 5 % 2 == 0 ? WPK_PACK_HALVES : 1;
    set_value(variant, gene, large ? part : (n + operand + 1) % 2, out);
}

/* Candidate number `n` of a variant: the n-th step along a walk in which the register tile of the
 * contraction changes fastest, then its loop orders, then blocks and places. */
static bool construct_one(const struct wpk_space *space, int v, const struct recipes *recipes,
                          int n, struct wpk_candidate *out)
{
    const struct wpk_variant *variant = &space->variants[v];
    const struct wpk_structure *s = variant->plan;
    int last = s->plan.group_count - 1;
    memset(out, 0, sizeof(*out));
    out->variant = v;
    out->gene_count = variant->gene_count;
    for (int g = 0; g <= last; g++) {
        const struct wpk_group *group = &s->plan.group[g];
        int walk = group->reuse ? n : n / 3;
        if (recipes[g].count == 0) {
            return false;
        }
        int pick = group->reuse ? walk % 5 + 5 * (n / 20 % 3) : walk % 3;
        set_recipe(variant, g, &recipes[g].recipe[pick % recipes[g].count], out);
        set_inner_order(variant, g, (n + n / 5) % 2, out);
        if (group->contraction >= 0) {
            set_reduction(variant, g, n % 7, out);
        }
        for (int i = 0; i < s->slots[g].pack_count; i++) {
            construct_pack(variant, s->slots[g].pack[i], n, i, out);
        }
        if (s->slots[g].outer >= 0 || s->slots[g].inner >= 0) {
            set_blocks(variant, g, g == last && last > 0 ? 1 + n % 6 : n % 4 == 3 ? n % 6 : 0, out);
        }
    }
    set_places(variant, &space->options, n % 3 != 2, out);
    for (int g = 0; g <= last && n % 4 == 1; g++) {
        set_panels(variant, &space->options.target.machine, g, &recipes[g], n / 4, out);
    }
    set_parallel(variant, n, out);
    return wpk_space_is_legal(space, out);
}

static bool is_new(const struct wpk_candidate *out, int count, const struct wpk_candidate *one)
{
    for (int i = 0; i < count; i++) {
        if (wpk_candidate_equal(&out[i], one)) {
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

/* Does the variant compute something else than those chosen before? */
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
        } else if (is_new_program(space, out, count, best)) {
            out[count++] = best;
        }
    }
    *chosen = count;
    return WPK_OK;
}

/* Each of the first ones by every back end; the last ones make room. */
static void set_back_ends(const struct wpk_space *space, struct wpk_candidate *out, int count)
{
    int choices = 0;
    for (int i = 0; wpk_back_end_name(i) != NULL; i++) {
        choices += (int)(space->options.back_ends >> i & 1);
    }
    for (int i = count - 1; i >= 0 && choices > 1; i--) {
        out[i] = out[i / choices];
        const struct wpk_structure *s = space->variants[out[i].variant].plan;
        out[i].gene[s->slots[0].by] = (uint8_t)(i % choices);
    }
}

wpk_err wpk_space_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                            int *filled)
{
    int chosen[WPK_VARIANTS_MAX], count = 0, variants = 0;
    wpk_err err = choose_variants(space, chosen, &variants);
    *filled = 0;
    if (err != WPK_OK || variants == 0) {
        return err;
    }
    struct recipes *all = calloc((size_t)variants * WPK_GROUPS_MAX, sizeof(struct recipes));
    if (all == NULL) {
        return WPK_ENOMEM;
    }
    for (int i = 0; i < variants; i++) {
        const struct wpk_variant *variant = &space->variants[chosen[i]];
        const struct wpk_structure *s = variant->plan;
        for (int g = 0; g < s->plan.group_count; g++) {
            collect_recipes(variant, &space->options, g, &all[i * WPK_GROUPS_MAX + g]);
        }
    }
    for (int n = 0; n < 8 * max && count < max; n++) {
        for (int i = 0; i < variants && count < max; i++) {
            struct wpk_candidate one;
            if (construct_one(space, chosen[i], &all[i * WPK_GROUPS_MAX], n, &one) &&
                is_new(out, count, &one)) {
                out[count++] = one;
            }
        }
    }
    free(all);
    put_fastest_first(space, out, count);
    set_back_ends(space, out, count);
    *filled = count;
    return WPK_OK;
}
