/* SPDX-License-Identifier: Apache-2.0 */
/* From a candidate's choices, which are text, to a group's decisions, which are numbers. */
#include "search/genes.h"

#include <string.h>

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

static const char *value_of(const struct wpk_variant *variant,
                            const struct wpk_candidate *candidate, int gene)
{
    WPK_ASSERT(gene >= 0 && gene < variant->gene_count);
    const struct wpk_gene *g = &variant->genes[gene];
    int choice = candidate->gene[gene];
    return g->choice[choice < g->choice_count ? choice : 0];
}

/* "all" and other words read as 0. */
static int64_t number_of(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                         int gene, int64_t absent)
{
    if (gene < 0) {
        return absent;
    }
    int64_t number = 0; /* choices are of our own making: at most 18 digits, without a sign */
    for (const char *at = value_of(variant, candidate, gene); *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (*at - '0');
    }
    return number;
}

static int axis_named(const struct wpk_stage *stage, int first, int end, const char *name,
                      size_t size)
{
    for (int a = first; a < end; a++) {
        if (strncmp(stage->axes[a].name, name, size) == 0 && stage->axes[a].name[size] == '\0') {
            return a;
        }
    }
    return -1;
}

static int read_order(const char *text, const struct wpk_stage *stage, int first, int end, int *out)
{
    int count = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, ",");
        int axis = axis_named(stage, first, end, text, size);
        WPK_ASSERT(axis >= 0);
        out[count++] = axis;
        text += size + (text[size] == ',');
    }
    return count;
}

static void read_place(const struct wpk_variant *variant, const struct wpk_plan *plan,
                       const char *text, struct wpk_decisions *out)
{
    (void)variant;
    out->level = WPK_LEVEL_ROOT;
    out->at_group = -1;
    for (int h = 0; h < plan->group_count; h++) {
        size_t size = strlen(plan->group[h].name);
        if (strncmp(text, plan->group[h].name, size) == 0 && text[size] == '.') {
            out->at_group = h;
            out->level = strcmp(text + size + 1, "tile") == 0 ? WPK_LEVEL_TILE : WPK_LEVEL_BLOCK;
        }
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
        read_order(value_of(variant, candidate, slots->inner), root, 0, root->rank, out->inner);
    }
    if (slots->outer >= 0) {
        read_order(value_of(variant, candidate, slots->outer), root, 0, root->rank, out->outer);
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
        read_order(value_of(variant, candidate, slots->red), stage, stage->rank, stage->axis_count,
                   out->red);
    }
    out->split_axis = wpk_largest_reduction(stage, literal);
    out->split = number_of(variant, candidate, slots->split, 0);
    out->unroll = number_of(variant, candidate, slots->unroll, 1);
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
    const char *vec = value_of(variant, candidate, slots->vec);
    out->vec = axis_named(root, 0, root->rank, vec, strlen(vec));
    out->lanes = (int)number_of(variant, candidate, slots->lanes, 1);
    for (int a = 0; a < root->rank; a++) {
        out->tile[a] = group->whole[a] ? root->axes[a].extent
                                       : number_of(variant, candidate, slots->tile[a], 1);
        out->block[a] = number_of(variant, candidate, slots->block[a], 0);
    }
    if (out->vec < 0) {
        out->lanes = 1;
    }
    read_orders(variant, candidate, slots, group, root, out);
    if (group->contraction >= 0) {
        read_reduction(variant, candidate, slots, group, out);
    }
    read_place(variant, &s->plan, slots->at < 0 ? "root" : value_of(variant, candidate, slots->at),
               out);
    for (int a = 0; a < root->rank && out->level != WPK_LEVEL_ROOT; a++) {
        out->block[a] = 0; /* it is computed block by block already */
    }
    out->roll = slots->roll >= 0 && strcmp(value_of(variant, candidate, slots->roll), "yes") == 0;
    out->par = (int)number_of(variant, candidate, slots->par, 0);
    for (int i = 0; i < slots->pack_count; i++) {
        out->pack[i] = strcmp(value_of(variant, candidate, slots->pack[i]), "yes") == 0;
    }
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
