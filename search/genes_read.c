/* SPDX-License-Identifier: Apache-2.0 */
/* From a candidate's choices to a group's decisions. */
#include "search/genes.h"

#include "ir/instruction/instruction.h"
#include "search/gene_list.h"
#include "search/rules.h"

#include <string.h>

int64_t wpk_place(int group, enum wpk_level level)
{
    return level == WPK_LEVEL_ROOT ? WPK_LEVEL_ROOT : (int64_t)group * WPK_LEVEL_COUNT + level;
}

int64_t wpk_order_with(int64_t order, int place, int axis)
{
    WPK_ASSERT(axis >= 0 && axis < WPK_AXES_MAX && place < WPK_AXES_MAX);
    return (int64_t)((uint64_t)order | (uint64_t)axis << 4 * place);
}

int wpk_order_axis(int64_t order, int place)
{
    return (int)((uint64_t)order >> 4 * place & 15);
}

const struct wpk_stage *wpk_root_of(const struct wpk_variant *variant, int group)
{
    const struct wpk_structure *s = variant->plan;
    return &variant->program.stages[s->plan.group[group].root];
}

const struct wpk_stage *wpk_contraction_of(const struct wpk_variant *variant,
                                           const struct wpk_group *group)
{
    return group->contraction < 0
               ? NULL
               : &variant->program.stages[group->member[group->contraction].stage];
}

int wpk_largest_reduction(const struct wpk_stage *stage, const bool *literal)
{
    int best = -1;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a] && (best < 0 || stage->axes[a].extent > stage->axes[best].extent)) {
            best = a;
        }
    }
    return best;
}

bool wpk_has_loop(const struct wpk_group *group, const struct wpk_stage *root, int axis)
{
    return root->axes[axis].extent > 1 && !group->whole[axis];
}

static int64_t value_of(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                        int gene, int64_t absent)
{
    if (gene < 0) {
        return absent;
    }
    WPK_ASSERT(gene < variant->gene_count);
    const struct wpk_gene *g = &variant->genes[gene];
    int choice = candidate->gene[gene];
    return g->choice[choice < g->choice_count ? choice : 0].value;
}

/* A size, 0 for all. */
static int64_t size_of(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                       int gene, int64_t absent)
{
    int64_t size = value_of(variant, candidate, gene, absent);
    return size == WPK_GENE_ALL ? 0 : size;
}

static void read_order(int64_t order, int count, int *out)
{
    for (int i = 0; i < count; i++) {
        out[i] = wpk_order_axis(order, i);
    }
}

static void read_orders(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                        const struct wpk_slots *slots, const struct wpk_group *group,
                        const struct wpk_stage *root, struct wpk_decisions *out)
{
    for (int a = 0; a < root->rank; a++) {
        if (wpk_has_loop(group, root, a)) {
            out->inner[out->order_count] = a;
            out->outer[out->order_count++] = a;
        }
    }
    if (slots->inner >= 0) {
        read_order(value_of(variant, candidate, slots->inner, 0), out->order_count, out->inner);
    }
    if (slots->outer >= 0) {
        read_order(value_of(variant, candidate, slots->outer, 0), out->order_count, out->outer);
    }
}

static void read_reduction(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                           const struct wpk_slots *slots, const struct wpk_group *group,
                           struct wpk_decisions *out)
{
    const struct wpk_stage *stage = wpk_contraction_of(variant, group);
    const bool *literal = group->member[group->contraction].literal;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a] && stage->axes[a].extent > 1) {
            out->red[out->red_count++] = a;
        }
    }
    if (slots->red >= 0) {
        read_order(value_of(variant, candidate, slots->red, 0), out->red_count, out->red);
    }
    out->split_axis = wpk_largest_reduction(stage, literal);
    out->split = size_of(variant, candidate, slots->split, 0);
    int64_t sum = size_of(variant, candidate, slots->sum, 0);
    int64_t panel = size_of(variant, candidate, slots->panel, 0);
    out->panel = panel > 0;
    out->blocked = sum > 0 || out->panel;
    /* one loop over parts is enough */
    out->split = out->panel ? panel : out->blocked ? sum : out->split;
    out->unroll = size_of(variant, candidate, slots->unroll, 1);
    int64_t dot = value_of(variant, candidate, slots->dot, WPK_GENE_ALL);
    if (dot != WPK_GENE_ALL) {
        out->dot = (int)dot;
        out->instruction = slots->instruction;
        out->terms = wpk_instruction_at(slots->instruction)->terms;
    }
}

int wpk_genes_back_end(const struct wpk_variant *variant, const struct wpk_candidate *candidate)
{
    const struct wpk_structure *s = variant->plan;
    return (int)value_of(variant, candidate, s->by, s->back_end);
}

bool wpk_genes_has_back_end(const struct wpk_variant *variant, int back_end)
{
    const struct wpk_structure *s = variant->plan;
    return s->by < 0 ? s->back_end == back_end
                     : wpk_gene_find(&variant->genes[s->by], back_end) >= 0;
}

void wpk_genes_set_back_end(const struct wpk_variant *variant, int back_end,
                            struct wpk_candidate *candidate)
{
    const struct wpk_structure *s = variant->plan;
    WPK_ASSERT(wpk_genes_has_back_end(variant, back_end));
    if (s->by >= 0) {
        candidate->gene[s->by] = (uint8_t)wpk_gene_find(&variant->genes[s->by], back_end);
    }
}

void wpk_genes_read(const struct wpk_variant *variant, const struct wpk_candidate *candidate, int g,
                    struct wpk_decisions *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    memset(out, 0, sizeof(*out));
    out->split_axis = -1;
    out->unroll = 1;
    out->dot = -1;
    out->terms = 1;
    out->vec = (int)value_of(variant, candidate, slots->vec, -1);
    out->lanes = (int)size_of(variant, candidate, slots->lanes, 1);
    for (int a = 0; a < root->rank; a++) {
        out->tile[a] =
            group->whole[a] ? root->axes[a].extent : size_of(variant, candidate, slots->tile[a], 1);
        out->block[a] = size_of(variant, candidate, slots->block[a], 0);
    }
    if (out->vec < 0) {
        out->lanes = 1;
    }
    out->own_tail = out->vec >= 0 && value_of(variant, candidate, slots->tail, 0) == 1;
    read_orders(variant, candidate, slots, group, root, out);
    if (group->contraction >= 0) {
        read_reduction(variant, candidate, slots, group, out);
    }
    int64_t place = value_of(variant, candidate, slots->at, wpk_place(-1, WPK_LEVEL_ROOT));
    out->level = (enum wpk_level)(place % WPK_LEVEL_COUNT);
    out->at_group = out->level == WPK_LEVEL_ROOT ? -1 : (int)(place / WPK_LEVEL_COUNT);
    for (int a = 0; a < root->rank && out->level != WPK_LEVEL_ROOT; a++) {
        out->block[a] = 0; /* it is computed block by block already */
    }
    out->roll = value_of(variant, candidate, slots->roll, 0) != 0;
    out->par = (int)size_of(variant, candidate, slots->par, 0);
    for (int i = 0; i < slots->pack_count; i++) {
        int64_t pack = value_of(variant, candidate, slots->pack[i], 0);
        out->pack[i] = pack != 0;
        out->staged[i] = pack == WPK_PACK_PANEL;
        out->halves[i] = pack == WPK_PACK_HALVES;
    }
}

bool wpk_has_dead_vectors(int64_t extent, int64_t tile, int lanes)
{
    int64_t rest = extent % tile;
    return rest > 0 && extent > tile && (rest + lanes - 1) / lanes < tile / lanes;
}

int64_t wpk_tile_count(const struct wpk_stage *root, const struct wpk_decisions *d, int axis)
{
    return (root->axes[axis].extent + d->tile[axis] - 1) / d->tile[axis];
}

int64_t wpk_block_tiles(const struct wpk_stage *root, const struct wpk_decisions *d, int axis)
{
    int64_t count = wpk_tile_count(root, d, axis);
    return d->block[axis] == 0 || d->block[axis] > count ? count : d->block[axis];
}

bool wpk_has_block_loop(const struct wpk_stage *root, const struct wpk_decisions *d, int axis)
{
    return wpk_block_tiles(root, d, axis) < wpk_tile_count(root, d, axis);
}

bool wpk_illegal(const char **why, const char *reason)
{
    if (why != NULL) {
        *why = reason;
    }
    return false;
}

void wpk_genes_set(const struct wpk_variant *variant, int gene, int64_t value,
                   struct wpk_candidate *out)
{
    int choice = gene < 0 ? -1 : wpk_gene_find(&variant->genes[gene], value);
    if (choice >= 0) {
        out->gene[gene] = (uint8_t)choice;
    }
}
