/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that prune before anything is compiled. Each is cheap and each has a reason that was
 * measured: spilled accumulators cost half the speed, and large tiles cost seconds of LLVM. The
 * limits of a machine are in the rules of its target. */
#include "search/candidate_nest.h"

#include "ir/derive/extract.h"
#include "ir/instruction/instruction.h"
#include "target/cpu/rules.h"

static bool axes_are_legal(const struct wpk_group *group, const struct wpk_stage *root,
                           const struct wpk_machine *machine, const struct wpk_decisions *d,
                           const char **why)
{
    for (int a = 0; a < root->rank; a++) {
        /* one element is within one division, and a whole axis has all of them */
        if (d->tile[a] % group->align[a] != 0 && d->tile[a] > 1 && !group->whole[a]) {
            return wpk_illegal(why, "a tile is not a multiple of its axis's alignment");
        }
    }
    if (d->vec >= 0) {
        int64_t extent = root->axes[d->vec].extent, tile = d->tile[d->vec];
        if (group->align[d->vec] > 1 && group->align[d->vec] % d->lanes != 0) {
            return wpk_illegal(why, "lanes would straddle the divisions of the vector axis");
        }
        if (tile % d->lanes != 0) {
            return wpk_illegal(why, "the vector axis's tile is not a multiple of the lanes");
        }
        if (d->lanes > machine->lanes_min && d->lanes / 2 >= extent) {
            return wpk_illegal(why, "half the lanes would do");
        }
        if (tile > d->lanes && tile > extent) {
            return wpk_illegal(why, "the vector axis's tile exceeds its extent");
        }
        if (d->own_tail && !wpk_has_dead_vectors(extent, tile, d->lanes)) {
            return wpk_illegal(why, "the last tile has no vectors past the end to leave out");
        }
    }
    return true;
}

static bool reduction_is_legal(const struct wpk_stage *stage, const struct wpk_decisions *d,
                               const char **why)
{
    if (d->red_count == 0) {
        return d->unroll == 1 || wpk_illegal(why, "no reduction loop to unroll");
    }
    int innermost = d->red[d->red_count - 1];
    int64_t extent = stage->axes[innermost].extent;
    if (innermost == d->split_axis && d->split > 0) {
        extent = d->split;
    }
    if (d->split > 0 && stage->axes[d->split_axis].extent % d->split != 0) {
        return wpk_illegal(why, "the split does not divide its axis");
    }
    if (extent % ((d->unroll > 1 || extent == d->split ? d->terms : 1) * d->unroll) != 0) {
        return wpk_illegal(why, "the unrolling does not divide the innermost reduction loop");
    }
    return true;
}

/* The totals of a block are computed in whole tiles, before the root reads them: nothing shifts in
 * an update. */
static bool panel_is_legal(const struct wpk_group *group, const struct wpk_stage *root,
                           const struct wpk_decisions *d, const char **why)
{
    for (int i = 0; i < d->order_count && d->panel; i++) {
        int a = d->inner[i];
        if (root->axes[a].extent % d->tile[a] != 0) {
            return wpk_illegal(why, "a panel's tiles do not divide an axis");
        }
        if (group->align[a] > 1 && wpk_tile_count(root, d, a) % wpk_block_tiles(root, d, a) != 0) {
            return wpk_illegal(why, "a panel's blocks do not divide an axis");
        }
    }
    for (int i = 0; i < WPK_PACKS_MAX && !d->panel; i++) {
        if (d->staged[i]) {
            return wpk_illegal(why, "an operand is staged in panels that do not exist");
        }
    }
    return !d->panel || d->level == WPK_LEVEL_ROOT ||
           wpk_illegal(why, "panels are in groups that are computed at the root");
}

/* Axes that some load of the stage has in another place than the last. */
static uint32_t strided_axes(const struct wpk_variant *variant, const struct wpk_stage *stage)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    uint32_t axes = 0;
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        const struct wpk_tensor *tensor = &program->tensors[load.node->tensor];
        int writer = wpk_program_writer(program, load.node->tensor);
        if (tensor->role == WPK_ROLE_CONSTANT || (writer >= 0 && s->plan.prepare[writer]) ||
            tensor->rank == 0 || tensor->extent[tensor->rank - 1] <= 1) {
            continue;
        }
        for (int dim = 0; dim + 1 < tensor->rank; dim++) {
            struct wpk_affine affine;
            bool known = wpk_index_affine(program, load.node->index[dim], &affine);
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
    for (int t = 0; t < variant->program.tensor_count; t++) {
        s->writer[t] = wpk_program_writer(&variant->program, t);
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

/* True if the tensor is an operand that is copied into the order of its use. */
static bool is_copied(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                      int tensor)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    for (int i = 0; i < slots->pack_count; i++) {
        if (d->pack[i] && variant->program.nodes[slots->pack_load[i]].tensor == tensor) {
            return true;
        }
    }
    return false;
}

/* True if neighbours of the load's tensor along its last dimension are terms of the axis. */
static bool lies_along(const struct wpk_program *program, const struct wpk_node *load, int axis)
{
    int last = program->tensors[load->tensor].rank - 1;
    struct wpk_affine affine;
    return last >= 0 && wpk_contraction_only_dim(program, load, axis) == last &&
           wpk_index_affine(program, load->index[last], &affine) && affine.coefficient[axis] == 1;
}

/* An instruction's terms lie together: of the operand in lanes in a copy, of the other one in a
 * copy or in the order of its tensor. */
static bool operands_are_legal(const struct wpk_variant *variant, int g,
                               const struct wpk_decisions *d, const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    struct wpk_instruction_product product[WPK_INSTRUCTION_PRODUCTS_MAX];
    int count =
        wpk_instruction_products(wpk_instruction_at(d->instruction), program, stage, product);
    bool one = count > 0; /* operand of each product is in lanes */
    for (int p = 0; p < count; p++) {
        int in_lanes = 0;
        for (int i = 0; i < 2; i++) {
            const struct wpk_node *node = &program->nodes[product[p].load[i]];
            bool lanes = false;
            for (int a = 0; a < stage->rank; a++) {
                lanes = lanes || (member->root_axis[a] == d->vec &&
                                  wpk_contraction_uses_axis(program, node, a));
            }
            in_lanes += lanes;
            bool copied = is_copied(variant, d, g, node->tensor);
            if (!copied && (lanes || !lies_along(program, node, d->dot))) {
                return wpk_illegal(
                    why, "the terms of an instruction do not lie together: copy the operand");
            }
        }
        one = one && in_lanes == 1;
    }
    return one || wpk_illegal(why, "an instruction needs lanes along one of its operands");
}

static bool dot_is_legal(const struct wpk_variant *variant, int g, const struct wpk_decisions *d,
                         const char **why)
{
    if (d->dot < 0) {
        return true;
    }
    if (!wpk_genes_has_back_end(variant, WPK_BACK_END_c)) {
        return wpk_illegal(why, "the back end c alone prints instructions");
    }
    if (d->red[d->red_count - 1] != d->dot) {
        return wpk_illegal(why, "the terms of an instruction are of the innermost reduction loop");
    }
    if (d->vec < 0 || d->lanes < 4) {
        return wpk_illegal(why, "an instruction needs lanes");
    }
    const struct wpk_group *group = &((const struct wpk_structure *)variant->plan)->plan.group[g];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    if (group->member[group->contraction].in_sum && wpk_has_block_loop(root, d, d->vec) &&
        root->axes[d->vec].extent % d->tile[d->vec] != 0) {
        /* the total has no slack as the copy has: a tile that may pass the end moves inwards */
        return wpk_illegal(why, "tiles of a sum of blocks do not divide a blocked axis");
    }
    return operands_are_legal(variant, g, d, why);
}

bool wpk_back_end_is_legal(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                           const char **why)
{
    const struct wpk_structure *s = variant->plan;
    bool legal = true;
    for (int g = 0; g < s->plan.group_count; g++) {
        struct wpk_decisions d;
        wpk_genes_read(variant, candidate, g, &d);
        legal = legal && (d.dot < 0 || wpk_genes_back_end(variant, candidate) == WPK_BACK_END_c);
    }
    return legal || wpk_illegal(why, "the back end c alone prints instructions");
}

/* Loads and arithmetic of one definition. Values of the group's members are in registers. */
static void count_definition(const struct wpk_variant *variant, const struct wpk_decisions *d,
                             int g, int stage, const struct wpk_access_tile *of, double values,
                             struct wpk_tile *tile)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_stage_access *facts = &s->accesses.stage[stage];
    tile->arithmetic += values * facts->instructions * facts->density;
    for (int i = facts->first; i < facts->first + facts->count; i++) {
        const struct wpk_access *access = &s->accesses.access[i];
        int last = variant->program.tensors[access->tensor].rank - 1;
        int writer = s->writer[access->tensor];
        bool single = false;
        if (writer < 0 || s->plan.group_of[writer] != g) {
            double count = wpk_access_count(&variant->program, access, of, last, &single);
            bool copied = single && is_copied(variant, d, g, access->tensor);
            tile->moves += copied ? count / (double)of->lanes : single ? 0 : count;
            tile->gathered += single && !copied ? count : 0;
        }
    }
}

/* Count what a member adds to the tile.   shape  region [member's axis_count] */
static void add_member(const struct wpk_variant *variant, const struct wpk_space_options *options,
                       const struct wpk_decisions *d, int g, int m, const int64_t *region,
                       struct wpk_tile *tile)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[m];
    const struct wpk_stage *stage = &variant->program.stages[member->stage];
    struct wpk_access_tile of = {.lanes = 1};
    int lanes = 1;
    of.lane_axis = wpk_member_vector(variant, options, d, member, region, &lanes);
    of.lanes = lanes;
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        bool literal = a < stage->axis_count && member->literal[a];
        bool rolls = d->roll && a < stage->rank && !literal &&
                     (member->root_axis[a] < 0 || group->whole[member->root_axis[a]]);
        bool covered = a < stage->rank ? !rolls : literal;
        of.vectors[a] = !covered || a >= stage->axis_count ? 1
                        : a == of.lane_axis                ? region[a] / lanes
                                                           : region[a];
    }
    if (m == group->contraction) {
        /* what a block's sum is added to is kept, too */
        tile->accumulators =
            wpk_extents_product(of.vectors, stage->rank) * (member->in_sum ? 2 : 1);
        if (d->red_count > 0) {
            of.vectors[d->red[d->red_count - 1]] = d->unroll;
        }
        tile->unrolled = wpk_extents_product(of.vectors, stage->axis_count);
        tile->moves += d->panel ? 3 * (double)tile->accumulators : 0;
        tile->definitions += d->panel ? 2 : 0;
    }
    tile->definitions += stage->reduction == WPK_REDUCE_NONE ? 1 : 2;
    count_definition(variant, d, g, member->stage, &of,
                     (double)wpk_extents_product(of.vectors, stage->axis_count), tile);
}

void wpk_decisions_tile(const struct wpk_variant *variant, const struct wpk_space_options *options,
                        int g, const struct wpk_decisions *d, struct wpk_tile *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    int64_t region[WPK_MEMBERS_MAX][WPK_AXES_MAX];
    struct wpk_access_tile of = {.lane_axis = d->lanes > 1 ? d->vec : -1, .lanes = d->lanes};
    bool scattered = of.lane_axis >= 0 && of.lane_axis != root->rank - 1;
    *out = (struct wpk_tile){
        .reuses = group->reuse,
        .copies = group->member_count == 0,
        .statements = wpk_extents_product(d->tile, root->rank) / d->lanes,
        .least = wpk_extents_product(group->align, root->rank) / d->lanes,
        .accumulators = 1,
        .vectors = d->vec < 0 ? 1 : d->tile[d->vec] / d->lanes,
        .definitions = 1,
    };
    double values = 1;
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        int64_t most = a < root->rank && d->tile[a] > root->axes[a].extent && a != d->vec
                           ? root->axes[a].extent
                           : d->tile[a];
        of.vectors[a] = a >= root->rank ? 1 : a == d->vec ? most / d->lanes : most;
        values *= (double)of.vectors[a];
    }
    *(scattered ? &out->scattered : &out->moves) += values * (scattered ? d->lanes : 1);
    count_definition(variant, d, g, group->root, &of, values, out);
    wpk_plan_regions(&variant->program, group, d->tile, region);
    for (int m = 0; m < group->member_count; m++) {
        add_member(variant, options, d, g, m, region[m], out);
    }
}

/* The smallest tile of an axis that a gene lists, in whole vectors where the axis is that of the
 * vectors; 0: no gene decides it. */
static int64_t least_tile(const struct wpk_variant *variant, int g, const struct wpk_decisions *d,
                          int axis)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_gene *gene =
        s->slots[g].tile[axis] < 0 ? NULL : &variant->genes[s->slots[g].tile[axis]];
    int64_t least = 0;
    for (int i = 0; gene != NULL && i < gene->listed_count; i++) {
        int64_t tile = gene->choice[i].value;
        bool whole = axis != d->vec || tile % d->lanes == 0;
        least = whole && (least == 0 || tile < least) ? tile : least;
    }
    return least;
}

static bool is_least(const struct wpk_variant *variant, int g, const struct wpk_decisions *d)
{
    bool least = d->unroll == 1 && !d->panel;
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        int64_t tile = least_tile(variant, g, d, a);
        least = least && (tile == 0 || d->tile[a] == tile);
    }
    return least;
}

/* True if the group has legal decisions with these lanes. */
static bool has_legal(const struct wpk_variant *variant, const struct wpk_space_options *options,
                      int g, const struct wpk_candidate *lanes)
{
    struct wpk_decisions d;
    wpk_genes_read(variant, lanes, g, &d);
    d.split = 0;
    d.unroll = 1;
    d.blocked = d.panel = false;
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        int64_t tile = least_tile(variant, g, &d, a);
        d.tile[a] = tile == 0 ? d.tile[a] : tile;
    }
    return wpk_group_is_legal(variant, options, g, &d, NULL);
}

void wpk_limits_derive(struct wpk_variant *variant, const struct wpk_space_options *options)
{
    struct wpk_structure *s = variant->plan;
    for (int g = 0; g < s->plan.group_count; g++) {
        const struct wpk_slots *slots = &s->slots[g];
        struct wpk_candidate one = {.gene_count = variant->gene_count};
        bool found = false;
        for (int v = 0; v < variant->genes[slots->vec].choice_count; v++) {
            for (int n = 0; n < variant->genes[slots->lanes].choice_count && !found; n++) {
                one.gene[slots->vec] = (uint8_t)v;
                one.gene[slots->lanes] = (uint8_t)n;
                found = has_legal(variant, options, g, &one);
            }
        }
        s->tight[g] = !found;
    }
}

bool wpk_group_is_legal(const struct wpk_variant *variant, const struct wpk_space_options *options,
                        int g, const struct wpk_decisions *d, const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    const struct wpk_machine *machine = &options->target.machine;
    const struct wpk_stage *contraction = wpk_contraction_of(variant, group);
    struct wpk_tile tile;
    if (!axes_are_legal(group, root, machine, d, why) ||
        (contraction != NULL &&
         (!reduction_is_legal(contraction, d, why) || !dot_is_legal(variant, g, d, why))) ||
        !panel_is_legal(group, root, d, why)) {
        return false;
    }
    if (s->tight[g]) {
        return is_least(variant, g, d) ||
               wpk_illegal(why, "only the smallest tiles are legal here");
    }
    wpk_decisions_tile(variant, options, g, d, &tile);
    return wpk_tile_is_legal(machine, &tile, why);
}

bool wpk_cpu_is_legal_group(const struct wpk_space *space, int g,
                            const struct wpk_candidate *candidate, const char **why)
{
    struct wpk_decisions decisions;
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    wpk_genes_read(variant, candidate, g, &decisions);
    return wpk_group_is_legal(variant, &space->options, g, &decisions, why);
}

/* True if an entry computed at (group, level) is there whenever `reader` reads it. The walk follows
 * the places (compute_at) of the reader and of the groups around it. */
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

/* A tile that is larger than what is needed would read past the ends of what feeds it, and a part
 * that is computed over and over costs more than fusing saves. */
static bool region_is_legal(const struct wpk_variant *variant, const struct wpk_machine *machine,
                            const struct wpk_decisions *d, const struct wpk_nest *nest, int g,
                            const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_stage *stage = wpk_root_of(variant, g);
    const struct wpk_decisions *at = &d[d[g].at_group];
    const struct wpk_stage *outer = wpk_root_of(variant, d[g].at_group);
    const struct wpk_group *group = &s->plan.group[g];
    int e = 0;
    while (nest->entry[e].stage != group->root) {
        e++;
        WPK_ASSERT(e < nest->entry_count);
    }
    const struct wpk_nest_entry *entry = &nest->entry[e];
    double computed = 1, needed = 1;
    bool members = has_real_member(group);
    for (int a = 0; a < stage->rank; a++) {
        int64_t tile = d[g].tile[a], extent = entry->extent[a], least = entry->least[a];
        if (tile > extent && stage->axes[a].extent > 1) {
            return wpk_illegal(why, "a tile exceeds what is needed of it where it is computed");
        }
        if (wpk_has_block_loop(stage, &d[g], a) &&
            tile * wpk_block_tiles(stage, &d[g], a) > extent) {
            return wpk_illegal(why, "a block exceeds what is needed of it where it is computed");
        }
        /* what is written out has a number of iterations */
        if (group->whole[a] && !d[g].roll && stage->axes[a].extent > 1 && least != extent) {
            return wpk_illegal(why,
                               "an axis that is unrolled whole is not needed as much everywhere");
        }
        /* members are computed for whole tiles: their reads cannot be guarded */
        if (members && least < extent && tile > 1 && (tile > least || group->align[a] > 1)) {
            return wpk_illegal(why, "a tile exceeds what is needed of it at a tail");
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
    return computed <= machine->recomputed_max * needed ||
           wpk_illegal(why, "computed too many times over");
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

/* True if the loops that the group is computed in (compute_at) exist and enclose all readers of the
 * group. */
static bool place_is_legal(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                           const char **why)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_plan *plan = &s->plan;
    int at = d[g].at_group;
    const struct wpk_stage *root = &variant->program.stages[plan->group[at].root];
    if (d[g].level == WPK_LEVEL_BLOCK && !has_any_block(root, &d[at])) {
        return wpk_illegal(why, "computed inside block loops that do not exist");
    }
    if (d[g].level == WPK_LEVEL_TILE && d[at].order_count == 0) {
        return wpk_illegal(why, "computed inside tile loops that do not exist");
    }
    if (d[g].level == WPK_LEVEL_TILE && d[at].panel) {
        return wpk_illegal(why, "computed inside tile loops, and the panels are outside of them");
    }
    for (int h = 0; h < plan->group_count; h++) {
        if (plan->feeds[g][h] && !encloses(d, at, d[g].level, h)) {
            return wpk_illegal(why, "computed where not all of its readers are");
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
        return wpk_illegal(why, "too many loops");
    }
    for (int g = 0; g < s->plan.group_count && placed; g++) {
        if (d[g].level != WPK_LEVEL_ROOT &&
            !region_is_legal(variant, &options->target.machine, d, &nest, g, why)) {
            return false;
        }
    }
    return true;
}
