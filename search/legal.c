/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that prune before anything is compiled. Each is cheap and each has a reason that was
 * measured: spilled accumulators cost half the speed, unrolled bodies beyond a few thousand
 * statements cost seconds of LLVM. */
#include "search/genes.h"

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

int wpk_member_vector(const struct wpk_variant *variant, const struct wpk_space_options *options,
                      const struct wpk_decisions *d, const struct wpk_member *member,
                      const int64_t *region, int *lanes)
{
    const struct wpk_stage *stage = &variant->program.stages[member->stage];
    for (int a = 0; a < stage->rank; a++) {
        if (d->vec >= 0 && member->root_axis[a] == d->vec && region[a] % d->lanes == 0) {
            *lanes = d->lanes;
            return a;
        }
    }
    int last = stage->rank - 1;
    for (int widest = options->device.vector_bytes / 4; last >= 0 && widest >= 4; widest /= 2) {
        if (region[last] % widest == 0) {
            *lanes = widest;
            return last;
        }
    }
    *lanes = 1;
    return -1;
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

/* A box of indices of each tensor. */
struct boxes {
    int64_t low[WPK_TENSORS_MAX][WPK_RANK_MAX];
    int64_t high[WPK_TENSORS_MAX][WPK_RANK_MAX];
    bool present[WPK_TENSORS_MAX];
};

/* What a dimension of a load reads of its tensor when the stage covers `extent`; `least`: where the
 * tensor ends. */
static void read_range(const struct wpk_program *program, const struct wpk_stage *stage,
                       const struct wpk_node *load, int dim, const int64_t *extent, bool least,
                       int64_t *low, int64_t *high)
{
    static const int64_t origin[WPK_AXES_MAX] = {0};
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int64_t first = 0, last = 0;
    wpk_index_range_in(program, load->index[dim], origin, extent, low, high);
    wpk_index_range(program, stage, load->index[dim], &first, &last);
    int64_t end = tensor->extent[dim] + tensor->pad_after[dim] - 1;
    if (least && first < -tensor->pad_before[dim]) {
        *low += -tensor->pad_before[dim] - first;
    }
    if (least && last > end) {
        *high -= last - end;
    }
    *high = *high < *low ? *low : *high;
}

static void extend_by_loads(const struct wpk_program *program, int id, const int64_t *extent,
                            bool least, struct boxes *boxes)
{
    const struct wpk_stage *stage = &program->stages[id];
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        int t = load->tensor;
        for (int dim = 0; dim < program->tensors[t].rank; dim++) {
            int64_t low = 0, high = 0;
            read_range(program, stage, load, dim, extent, least, &low, &high);
            if (!boxes->present[t] || low < boxes->low[t][dim]) {
                boxes->low[t][dim] = low;
            }
            if (!boxes->present[t] || high > boxes->high[t][dim]) {
                boxes->high[t][dim] = high;
            }
        }
        boxes->present[t] = true;
    }
}

static void find_region(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                        bool least, int64_t *extent);

/* What one iteration at `level` of group h covers of a root axis: most of the time, or at the tails
 * at least. */
static int64_t covered(const struct wpk_variant *variant, const struct wpk_decisions *d, int h,
                       enum wpk_level level, int a, bool least)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[h];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    int64_t most[WPK_RANK_MAX], fewest[WPK_RANK_MAX], tile = d[h].tile[a];
    find_region(variant, d, h, false, most);
    int64_t span = level == WPK_LEVEL_TILE              ? tile
                   : wpk_has_block_loop(root, &d[h], a) ? tile * wpk_block_tiles(root, &d[h], a)
                                                        : most[a];
    if (!least || span >= most[a]) {
        return span < most[a] ? span : most[a];
    }
    find_region(variant, d, h, true, fewest);
    if (fewest[a] != most[a]) {
        return 1;
    }
    if (group->align[a] > 1) { /* guarded: the last one is cut short */
        return most[a] % span == 0 ? span : most[a] % span;
    }
    /* shifted: the last tile overlaps the one before it */
    int64_t overlap = most[a] % tile == 0 ? 0 : tile - most[a] % tile;
    return level == WPK_LEVEL_TILE ? tile : span - overlap;
}

static void find_region(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                        bool least, int64_t *extent)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    const struct wpk_stage *target = &program->stages[s->plan.group[g].root];
    int at = d[g].level == WPK_LEVEL_ROOT ? -1 : d[g].at_group;
    struct boxes boxes;
    memset(boxes.present, 0, sizeof(boxes.present));
    for (int a = 0; a < target->rank; a++) {
        extent[a] = target->axes[a].extent;
    }
    for (int h = at; h > g; h--) {
        const struct wpk_group *group = &s->plan.group[h];
        const struct wpk_stage *root = &program->stages[group->root];
        int64_t box[WPK_AXES_MAX], region[WPK_MEMBERS_MAX][WPK_AXES_MAX];
        if (h != at && !boxes.present[root->output]) {
            continue;
        }
        for (int a = 0; a < root->rank; a++) {
            int64_t size = h == at ? covered(variant, d, h, d[g].level, a, least)
                                   : boxes.high[root->output][a] - boxes.low[root->output][a] + 1;
            box[a] = size < root->axes[a].extent ? size : root->axes[a].extent;
        }
        wpk_plan_regions(program, group, box, region);
        extend_by_loads(program, group->root, box, least, &boxes);
        for (int m = 0; m < group->member_count; m++) {
            extend_by_loads(program, group->member[m].stage, region[m], least, &boxes);
        }
    }
    for (int a = 0; a < target->rank && boxes.present[target->output]; a++) {
        int64_t size = boxes.high[target->output][a] - boxes.low[target->output][a] + 1;
        extent[a] = size < extent[a] ? size : extent[a];
    }
}

void wpk_group_region(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                      int64_t *extent, int64_t *least)
{
    find_region(variant, d, g, false, extent);
    if (least != NULL) {
        find_region(variant, d, g, true, least);
    }
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

/* A tile that is larger than what is needed would read past the ends of what feeds it, and a part
 * that is computed over and over costs more than fusing saves. */
static bool region_is_legal(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                            const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_stage *stage = &variant->program.stages[s->plan.group[g].root];
    const struct wpk_decisions *at = &d[d[g].at_group];
    const struct wpk_stage *outer = &variant->program.stages[s->plan.group[d[g].at_group].root];
    const struct wpk_group *group = &s->plan.group[g];
    int64_t extent[WPK_RANK_MAX], least[WPK_RANK_MAX];
    double computed = 1, needed = 1;
    wpk_group_region(variant, d, g, extent, least);
    bool members = has_real_member(group);
    for (int a = 0; a < stage->rank; a++) {
        int64_t tile = d[g].tile[a];
        if (tile > extent[a] && stage->axes[a].extent > 1) {
            return no(why, "a tile exceeds what is needed of it where it is computed");
        }
        if (wpk_has_block_loop(stage, &d[g], a) &&
            tile * wpk_block_tiles(stage, &d[g], a) > extent[a]) {
            return no(why, "a block exceeds what is needed of it where it is computed");
        }
        /* members are computed for whole tiles: their reads cannot be guarded */
        if (members && least[a] < extent[a] && tile > 1 &&
            (tile > least[a] || group->align[a] > 1)) {
            return no(why, "a tile exceeds what is needed of it at a tail");
        }
        computed *= (double)extent[a];
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

bool wpk_placement_is_legal(const struct wpk_variant *variant,
                            const struct wpk_candidate *candidate, const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_plan *plan = &s->plan;
    struct wpk_decisions d[WPK_GROUPS_MAX];
    for (int g = 0; g < plan->group_count; g++) {
        wpk_genes_read(variant, candidate, g, &d[g]);
    }
    for (int g = 0; g < plan->group_count; g++) {
        if (d[g].level == WPK_LEVEL_ROOT) {
            continue;
        }
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
        if (!region_is_legal(variant, d, g, why)) {
            return false;
        }
    }
    return true;
}
