/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that prune before anything is compiled. Each is cheap and each has a reason that was
 * measured: spilled accumulators cost half the speed, unrolled bodies beyond a few thousand
 * statements cost seconds of LLVM. */
#include "search/candidate_nest.h"

#include <string.h>

/* Vector statements in one unrolled tile: of 2,400 trials on c1..c12 none of the best had more, and
 * theirs took twice as long to build. */
#define STATEMENTS_MAX 400
#define COPIES_MAX 16        /* in a group that only copies or maps: borders multiply it */
#define UNROLLED_FMA_MAX 256 /* in the body of the contraction's innermost loop */
#define RECOMPUTE_MAX 4.0    /* a fused producer may be computed this many times over */

static bool no(const char **why, const char *reason)
{
    if (why != NULL) {
        *why = reason;
    }
    return false;
}

static int64_t product(const int64_t *values, int count)
{
    int64_t result = 1;
    for (int i = 0; i < count; i++) {
        result *= values[i];
    }
    return result;
}

static bool axes_are_legal(const struct wpk_group *group, const struct wpk_stage *root,
                           const struct wpk_decisions *d, const char **why)
{
    for (int a = 0; a < root->rank; a++) {
        if (d->tile[a] % group->align[a] != 0 && root->axes[a].extent > 1) {
            return no(why, "a tile is not a multiple of its axis's alignment");
        }
    }
    if (d->vec >= 0) {
        int64_t extent = root->axes[d->vec].extent, tile = d->tile[d->vec];
        if (group->align[d->vec] > 1 && group->align[d->vec] % d->lanes != 0) {
            return no(why, "lanes would straddle the divisions of the vector axis");
        }
        if (tile % d->lanes != 0) {
            return no(why, "the vector axis's tile is not a multiple of the lanes");
        }
        if (d->lanes > 4 && d->lanes / 2 >= extent) {
            return no(why, "half the lanes would do");
        }
        if (tile > d->lanes && tile > extent) {
            return no(why, "the vector axis's tile exceeds its extent");
        }
    }
    return true;
}

static bool reduction_is_legal(const struct wpk_stage *stage, const struct wpk_decisions *d,
                               int64_t accumulators, const char **why)
{
    if (d->red_count == 0) {
        return d->unroll == 1 || no(why, "no reduction loop to unroll");
    }
    int innermost = d->red[d->red_count - 1];
    int64_t extent = stage->axes[innermost].extent;
    if (innermost == d->split_axis && d->split > 0) {
        extent = d->split;
    }
    if (d->split > 0 && stage->axes[d->split_axis].extent % d->split != 0) {
        return no(why, "the split does not divide its axis");
    }
    if (extent % d->unroll != 0) {
        return no(why, "the unrolling does not divide the innermost reduction loop");
    }
    if (accumulators * d->unroll > UNROLLED_FMA_MAX) {
        return no(why, "the innermost reduction loop is unrolled too far");
    }
    return true;
}

/* Axes that some load of the stage has in another place than the last. */
static uint32_t strided_axes(const struct wpk_variant *variant, const struct wpk_stage *stage)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    int loads[WPK_LOADS_MAX];
    uint32_t axes = 0;
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        const struct wpk_tensor *tensor = &program->tensors[load->tensor];
        int writer = wpk_program_writer(program, load->tensor);
        if (tensor->role == WPK_ROLE_CONSTANT || (writer >= 0 && s->plan.prepare[writer]) ||
            tensor->rank == 0 || tensor->extent[tensor->rank - 1] <= 1) {
            continue;
        }
        for (int dim = 0; dim + 1 < tensor->rank; dim++) {
            struct wpk_affine affine;
            bool known = wpk_index_affine(program, load->index[dim], &affine);
            for (int a = 0; known && a < stage->axis_count; a++) {
                axes |= affine.coefficient[a] != 0 ? UINT32_C(1) << a : 0;
            }
        }
    }
    return axes;
}

void wpk_strides_derive(struct wpk_variant *variant)
{
    struct wpk_structure *s = variant->plan;
    for (int i = 0; i < variant->program.stage_count; i++) {
        s->strided[i] = strided_axes(variant, &variant->program.stages[i]);
    }
}

bool wpk_stage_is_strided(const struct wpk_variant *variant, const struct wpk_stage *stage,
                          int axis)
{
    const struct wpk_structure *s = variant->plan;
    ptrdiff_t number = stage - variant->program.stages;
    WPK_ASSERT(number >= 0 && number < variant->program.stage_count);
    return (s->strided[number] >> axis & 1) != 0;
}

bool wpk_group_is_legal(const struct wpk_variant *variant, const struct wpk_space_options *options,
                        int g, const struct wpk_decisions *d, const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    int64_t region[WPK_MEMBERS_MAX][WPK_AXES_MAX];
    if (!axes_are_legal(group, root, d, why)) {
        return false;
    }
    wpk_plan_regions(&variant->program, group, d->tile, region);
    int64_t statements = product(d->tile, root->rank) / d->lanes;
    int64_t accumulators = 1, unrolled = 1;
    for (int m = 0; m < group->member_count; m++) {
        const struct wpk_stage *stage = &variant->program.stages[group->member[m].stage];
        int lanes = 1,
            vector = wpk_member_vector(variant, options, d, &group->member[m], region[m], &lanes);
        int64_t values = product(region[m], stage->rank) / lanes;
        values = values < 1 ? 1 : values;
        accumulators = m == group->contraction ? values : accumulators;
        int64_t whole = values;
        for (int a = 0; a < stage->axis_count; a++) {
            bool literal = group->member[m].literal[a];
            values *= a >= stage->rank && literal ? stage->axes[a].extent : 1;
            if (d->roll && a < stage->rank && !literal && group->member[m].root_axis[a] < 0) {
                values /= region[m][a];
            } else if (d->roll && a < stage->rank && !literal &&
                       group->whole[group->member[m].root_axis[a]]) {
                values /= region[m][a];
            }
        }
        unrolled = m == group->contraction ? values / whole : unrolled;
        values *= m == group->contraction ? d->unroll : 1;
        statements +=
            vector >= 0 && wpk_stage_is_strided(variant, stage, vector) ? values * lanes : values;
    }
    bool copies = group->member_count == 0; /* nothing is reused: unrolling only hides latency */
    int64_t smallest = product(group->align, root->rank) / d->lanes; /* always has to be legal */
    if (statements > STATEMENTS_MAX ||
        (copies && statements > COPIES_MAX && statements > smallest)) {
        return no(why, "too many unrolled statements");
    }
    if (group->reuse) {
        int64_t vectors = d->vec < 0 ? 1 : d->tile[d->vec] / d->lanes;
        if (accumulators + vectors + 1 > options->device.vector_registers) {
            return no(why, "the accumulators do not fit the registers");
        }
    }
    return group->contraction < 0 ||
           reduction_is_legal(&variant->program.stages[group->member[group->contraction].stage], d,
                              accumulators * unrolled, why);
}

/* Does computing something at (group, level) come before `reader` reads it, at every reader's
 * iteration? Follows where the reader itself is computed. */
static bool encloses(const struct wpk_decisions *d, int group, enum wpk_level level, int reader)
{
    for (int h = reader; h >= 0; h = d[h].level == WPK_LEVEL_ROOT ? -1 : d[h].at_group) {
        if (h == group) {
            return true;
        }
        if (d[h].level != WPK_LEVEL_ROOT && d[h].at_group == group && d[h].level < level) {
            return false;
        }
    }
    return false;
}

static bool has_real_member(const struct wpk_group *group)
{
    for (int m = 0; m < group->member_count; m++) {
        if (!group->member[m].inlined) {
            return true;
        }
    }
    return false;
}

static const struct wpk_nest_entry *root_entry(const struct wpk_nest *nest, int root)
{
    int e = 0;
    while (nest->entry[e].stage != root) {
        e++;
        WPK_ASSERT(e < nest->entry_count);
    }
    return &nest->entry[e];
}

/* A tile that is larger than what is needed would read past the ends of what feeds it, and a part
 * that is computed over and over costs more than fusing saves. */
static bool region_is_legal(const struct wpk_variant *variant, const struct wpk_decisions *d,
                            const struct wpk_nest *nest, int g, const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_stage *stage = &variant->program.stages[s->plan.group[g].root];
    const struct wpk_decisions *at = &d[d[g].at_group];
    const struct wpk_stage *outer = &variant->program.stages[s->plan.group[d[g].at_group].root];
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_nest_entry *entry = root_entry(nest, group->root);
    double computed = 1, needed = 1;
    bool members = has_real_member(group);
    for (int a = 0; a < stage->rank; a++) {
        int64_t tile = d[g].tile[a], extent = entry->extent[a], least = entry->least[a];
        if (tile > extent && stage->axes[a].extent > 1) {
            return no(why, "a tile exceeds what is needed of it where it is computed");
        }
        if (wpk_has_block_loop(stage, &d[g], a) &&
            tile * wpk_block_tiles(stage, &d[g], a) > extent) {
            return no(why, "a block exceeds what is needed of it where it is computed");
        }
        /* members are computed for whole tiles: their reads cannot be guarded */
        if (members && least < extent && tile > 1 && (tile > least || group->align[a] > 1)) {
            return no(why, "a tile exceeds what is needed of it at a tail");
        }
        computed *= (double)extent;
        needed *= (double)stage->axes[a].extent;
    }
    for (int i = 0; i < at->order_count; i++) {
        int a = at->outer[i];
        int64_t tiles = wpk_tile_count(outer, at, a);
        int64_t block = d[g].level == WPK_LEVEL_TILE ? 1 : wpk_block_tiles(outer, at, a);
        computed *= (double)((tiles + block - 1) / block);
    }
    return computed <= RECOMPUTE_MAX * needed || no(why, "computed too many times over");
}

static bool has_any_block(const struct wpk_stage *root, const struct wpk_decisions *d)
{
    for (int i = 0; i < d->order_count; i++) {
        if (wpk_has_block_loop(root, d, d->outer[i])) {
            return true;
        }
    }
    return false;
}

/* Does the place exist, and is it around all readers of the group? */
static bool place_is_legal(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                           const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_plan *plan = &s->plan;
    int at = d[g].at_group;
    const struct wpk_stage *root = &variant->program.stages[plan->group[at].root];
    if (d[g].level == WPK_LEVEL_BLOCK && !has_any_block(root, &d[at])) {
        return no(why, "computed inside block loops that do not exist");
    }
    if (d[g].level == WPK_LEVEL_TILE && d[at].order_count == 0) {
        return no(why, "computed inside tile loops that do not exist");
    }
    for (int h = 0; h < plan->group_count; h++) {
        if (plan->feeds[g][h] && !encloses(d, at, d[g].level, h)) {
            return no(why, "computed where not all of its readers are");
        }
    }
    return true;
}

bool wpk_placement_is_legal(const struct wpk_variant *variant,
                            const struct wpk_space_options *options,
                            const struct wpk_candidate *candidate, const char **why)
{
    const struct wpk_structure *s = variant->plan;
    struct wpk_decisions d[WPK_GROUPS_MAX];
    struct wpk_nest nest;
    bool placed = false;
    for (int g = 0; g < s->plan.group_count; g++) {
        wpk_genes_read(variant, candidate, g, &d[g]);
        placed = placed || d[g].level != WPK_LEVEL_ROOT;
    }
    for (int g = 0; g < s->plan.group_count && placed; g++) {
        if (d[g].level != WPK_LEVEL_ROOT && !place_is_legal(variant, d, g, why)) {
            return false;
        }
    }
    if (placed && wpk_decisions_nest(variant, options, d, &nest) != WPK_OK) {
        return no(why, "too many loops");
    }
    for (int g = 0; g < s->plan.group_count && placed; g++) {
        if (d[g].level != WPK_LEVEL_ROOT && !region_is_legal(variant, d, &nest, g, why)) {
            return false;
        }
    }
    return true;
}
