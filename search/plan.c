/* SPDX-License-Identifier: Apache-2.0 */
#include "search/plan.h"

#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "ir/node.h"
#include "search/reuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if the pointwise stage reads a contraction: its tile is then the register tile. */
static bool finishes_contraction(const struct wpk_program *program, const struct wpk_stage *stage)
{
    for (struct wpk_loads load = wpk_loads_of(program, stage);
         wpk_loads_next(&load) && stage->reduction == WPK_REDUCE_NONE;) {
        int writer = wpk_program_writer(program, load.node->tensor);
        bool literal[WPK_AXES_MAX];
        if (writer >= 0) {
            wpk_reuse_mark_literal(program, &program->stages[writer], literal);
            if (wpk_reuse_pays(program, &program->stages[writer], literal)) {
                return true;
            }
        }
    }
    return false;
}

/* True if the load keeps the alignment of the stage that it reads. A tile of the reader covers
 * whole aligned parts of the stage's axis only if the index is an axis of the reader. */
static bool keeps_alignment(const struct wpk_program *program, const struct wpk_stage *reader,
                            int id, int load)
{
    const struct wpk_node *node = &program->nodes[load];
    for (int d = 0; d < program->stages[id].rank; d++) {
        bool used[WPK_AXES_MAX] = {false}, moves = false;
        if (wpk_index_axis(program, node->index[d]) >= 0) {
            continue;
        }
        (void)wpk_reuse_mark_index(program, node->index[d], used);
        for (int a = 0; a < reader->rank; a++) {
            moves = moves || (used[a] && reader->axes[a].extent > 1);
        }
        if (moves && wpk_program_alignment(program, id, d) > 1) {
            return false;
        }
    }
    return true;
}

/* True if the reader sums other terms than the load alone, and its terms read nothing of the
 * contraction's operands again: each block of a sum is then computed where it is added to the
 * others, as where blocks have scales. */
static bool is_summed_in_blocks(const struct wpk_program *program, const struct wpk_stage *stage,
                                const struct wpk_stage *reader, int load)
{
    int term = reader->expr;
    while (program->nodes[term].kind == WPK_NODE_CAST) {
        term = program->nodes[term].arg[0];
    }
    bool blocks = reader->reduction == WPK_REDUCE_SUM && term != load;
    for (int d = 0; d < stage->rank && blocks; d++) {
        bool summed = wpk_index_axis(program, program->nodes[load].index[d]) >= reader->rank;
        for (struct wpk_loads of = wpk_loads_of(program, stage); wpk_loads_next(&of);) {
            blocks = blocks && (!summed || stage->axes[d].extent == 1 ||
                                wpk_contraction_uses_axis(program, of.node, d));
        }
    }
    return blocks;
}

/* The stage that this one joins, or -1: it is a root. */
static int joins(const struct wpk_program *program, int id, int *load)
{
    const struct wpk_stage *stage = &program->stages[id];
    bool literal[WPK_AXES_MAX], consumer_literal[WPK_AXES_MAX];
    if (program->tensors[stage->output].role == WPK_ROLE_OUTPUT) {
        return -1;
    }
    int consumer = wpk_program_only_load(program, stage->output, load);
    if (consumer < 0) {
        return -1;
    }
    const struct wpk_stage *reader = &program->stages[consumer];
    wpk_reuse_mark_literal(program, stage, literal);
    wpk_reuse_mark_literal(program, reader, consumer_literal);
    bool pays = wpk_reuse_pays(program, stage, literal);
    bool joined = pays || finishes_contraction(program, stage)
                      ? wpk_reuse_reads_one_to_one(program, reader, *load) &&
                            (reader->reduction == WPK_REDUCE_NONE ||
                             (pays && is_summed_in_blocks(program, stage, reader, *load)))
                      : wpk_reuse_reads_once(program, reader, *load, consumer_literal);
    /* the tiles of a product begin and end inside the rows of what it reads flat: these are no box
     * of rows and columns, which could be computed for the tile */
    bool box = reader->reduction == WPK_REDUCE_NONE ||
               wpk_load_flat_dim(program, &program->nodes[*load]) < 0;
    return joined && box && keeps_alignment(program, reader, id, *load) ? consumer : -1;
}

/* ---- normalizing */

static bool uses_reduction(const struct wpk_program *program, const struct wpk_stage *stage,
                           const struct wpk_node *load)
{
    bool used[WPK_AXES_MAX] = {false};
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        (void)wpk_reuse_mark_index(program, load->index[d], used);
    }
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (used[a]) {
            return true;
        }
    }
    return false;
}

/* The axis along which the index runs through neighbours: the axis that it is, or the reduction
 * axis that it has runs of, as where a reduction is cut into parts. -1: there is none. */
static int neighbour_axis(const struct wpk_program *program, const struct wpk_stage *stage,
                          int index)
{
    struct wpk_affine affine;
    int found = wpk_index_axis(program, index);
    if (found >= 0 || !wpk_index_affine(program, index, &affine)) {
        return found;
    }
    for (int a = stage->rank; a < stage->axis_count; a++) {
        found = affine.coefficient[a] == 1 ? a : found;
    }
    for (int a = 0; a < stage->axis_count && found >= 0; a++) {
        bool aside = a == found || stage->axes[a].extent == 1;
        found = aside || affine.coefficient[a] % stage->axes[found].extent == 0 ? found : -1;
    }
    return found;
}

/* The reduction axis along which the stage's loads are contiguous while no output axis is. */
static int row_axis(const struct wpk_program *program, const struct wpk_stage *stage)
{
    int found = -1;
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        int rank = program->tensors[load.node->tensor].rank;
        if (rank == 0 || program->tensors[load.node->tensor].role == WPK_ROLE_LITERAL) {
            continue;
        }
        int axis = neighbour_axis(program, stage, load.node->index[rank - 1]);
        if (!uses_reduction(program, stage, load.node)) {
            continue; /* the same for the whole row */
        }
        if (axis >= stage->rank && (found < 0 || found == axis)) {
            found = axis;
        } else if (axis >= 0 && axis < stage->rank && stage->axes[axis].extent > 1) {
            return -1;
        }
    }
    return found;
}

/* Into how many lanes a reduction over `extent` terms is cut; 0: it is not. Without a divisor the
 * cut is that of the shortest chain: the terms of a lane, and those that are left. */
static int64_t find_cut(const struct wpk_machine *machine, int64_t extent)
{
    int64_t best = 0;
    int64_t chain = 0;

    for (int cut = machine->row_vectors * machine->lanes_max; cut >= machine->lanes_min; cut /= 2) {
        if (extent > cut && extent % cut == 0) {
            return cut;
        }
        if (extent >= 2 * cut && (best == 0 || extent / cut + extent % cut < chain)) {
            best = cut;
            chain = extent / cut + extent % cut;
        }
    }
    return best;
}

/* Every reduction is cut once. */
static wpk_err split_rows(struct wpk_program *program, const struct wpk_machine *machine)
{
    char names[WPK_STAGES_MAX][WPK_NAME_MAX]; /* of tensors: the ids of stages change */
    int count = 0;
    wpk_err err = WPK_OK;

    for (int s = 0; s < program->stage_count; s++) {
        if (program->stages[s].reduction != WPK_REDUCE_NONE) {
            snprintf(names[count++], WPK_NAME_MAX, "%s",
                     program->tensors[program->stages[s].output].name);
        }
    }
    for (int i = 0; err == WPK_OK && i < count; i++) {
        int tensor = wpk_program_find_tensor(program, names[i]);
        /* The stage of this name is cut into lanes and the sum of them, if that is worth it. */
        int id = wpk_program_writer(program, tensor);
        const struct wpk_stage *stage = &program->stages[id];
        bool prepare[WPK_STAGES_MAX], literal[WPK_AXES_MAX];
        wpk_program_mark_prepare(program, prepare);
        wpk_reuse_mark_literal(program, stage, literal);
        int axis =
            prepare[id] || wpk_reuse_pays(program, stage, literal) ? -1 : row_axis(program, stage);
        int64_t cut = axis < 0 || literal[axis] ? 0 : find_cut(machine, stage->axes[axis].extent);
        err = cut > 0 ? wpk_derive_split_reduction(program, id, axis, cut) : WPK_OK;
    }
    return err;
}

wpk_err wpk_plan_normalize(struct wpk_program *program, const struct wpk_machine *machine)
{
    wpk_err err = split_rows(program, machine);
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        bool prepare[WPK_STAGES_MAX];
        int load = -1;
        wpk_program_mark_prepare(program, prepare);
        if (program->stages[s].reduction != WPK_REDUCE_NONE && !prepare[s] &&
            joins(program, s, &load) < 0) {
            err = wpk_derive_copy_after(program, s, NULL);
            s = -1;
        }
    }
    return err;
}

/* ---- grouping */

static int member_of_stage(const struct wpk_group *group, int stage)
{
    for (int m = 0; m < group->member_count; m++) {
        if (group->member[m].stage == stage) {
            return m;
        }
    }
    return -1;
}

static wpk_err add_member(const struct wpk_program *program, struct wpk_group *group, int id,
                          int consumer, int load)
{
    const struct wpk_stage *stage = &program->stages[id];
    if (group->member_count == WPK_MEMBERS_MAX) {
        return WPK_ENOSPC;
    }
    int through = member_of_stage(group, consumer);
    struct wpk_member *member = &group->member[group->member_count++];
    memset(member, 0, sizeof(*member));
    member->stage = id;
    member->consumer = through;
    member->load = load;
    member->inlined = stage->reduction == WPK_REDUCE_NONE;
    wpk_reuse_mark_literal(program, stage, member->literal);
    member->in_sum = program->stages[consumer].reduction != WPK_REDUCE_NONE &&
                     wpk_reuse_pays(program, stage, member->literal);
    for (int d = 0; d < stage->rank; d++) {
        int axis = wpk_index_axis(program, program->nodes[load].index[d]);
        bool output_axis = axis >= 0 && axis < program->stages[consumer].rank;
        member->root_axis[d] = !output_axis  ? -1
                               : through < 0 ? axis
                                             : group->member[through].root_axis[axis];
    }
    return WPK_OK;
}

/* True if a reduction axis of its consumer runs along the member's contiguous axis. */
static bool is_row(const struct wpk_program *program, const struct wpk_group *group,
                   const struct wpk_member *member)
{
    const struct wpk_stage *stage = &program->stages[member->stage];
    int last = stage->rank - 1;
    if (member->consumer < 0 || member->inlined || member->in_sum || last < 0 ||
        stage->axes[last].extent == 1) {
        return false;
    }
    const struct wpk_member *reader = &group->member[member->consumer];
    int axis = wpk_index_axis(program, program->nodes[member->load].index[last]);
    return axis >= program->stages[reader->stage].rank && !reader->literal[axis];
}

/* Elements of an axis that may be one register tile because its alignment is that large. */
#define WHOLE_TILE_MAX 4096

/* The number of elements that tiles along an axis must be multiples of. Members of the group that
 * are read by collapsed axes are computed for whole rows. A tensor in memory can be read in any
 * order: an alignment that would make a long axis one tile is not kept. */
static int64_t tile_alignment(const struct wpk_program *program, const struct wpk_group *group,
                              const struct wpk_stage *stage, int axis)
{
    bool reads_members = false;
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        int writer = wpk_program_writer(program, load.node->tensor);
        bool is_member = writer >= 0 && member_of_stage(group, writer) >= 0;
        reads_members = reads_members || is_member;
        if (is_member && wpk_load_flat_dim(program, load.node) >= 0) {
            return wpk_axis_alignment(program, stage, axis);
        }
    }
    int64_t align = wpk_axis_tile_alignment(program, stage, axis);
    int64_t extent = stage->axes[axis].extent;
    return align >= extent && extent > WHOLE_TILE_MAX && !reads_members ? 1 : align;
}

static void describe_group(const struct wpk_program *program, struct wpk_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    bool literal[WPK_AXES_MAX];
    wpk_reuse_mark_literal(program, root, literal);
    snprintf(group->name, sizeof(group->name), "%s", program->tensors[root->output].name);
    group->contraction = -1;
    for (int a = 0; a < root->rank; a++) {
        group->align[a] = tile_alignment(program, group, root, a);
        group->whole[a] = literal[a];
    }
    double largest = 0;
    for (int m = 0; m < group->member_count; m++) {
        struct wpk_member *member = &group->member[m];
        const struct wpk_stage *stage = &program->stages[member->stage];
        for (int d = 0; d < stage->rank; d++) {
            int axis = member->root_axis[d];
            if (axis < 0) {
                continue;
            }
            group->whole[axis] = group->whole[axis] || member->literal[d];
            int64_t align = tile_alignment(program, group, stage, d);
            group->align[axis] = wpk_lcm(group->align[axis], align);
        }
        if (stage->reduction != WPK_REDUCE_NONE &&
            wpk_reuse_has_plain_reduction(stage, member->literal) &&
            wpk_stage_points(stage) > largest) {
            largest = wpk_stage_points(stage);
            group->contraction = m;
            group->reuse = wpk_reuse_pays(program, stage, member->literal);
        }
        group->rows = group->rows || is_row(program, group, member);
    }
    for (int a = 0; a < root->rank; a++) { /* one tile holds all of an axis that short */
        int64_t extent = root->axes[a].extent;
        group->align[a] = group->align[a] < extent ? group->align[a] : extent;
    }
}

static void mark_feeds(const struct wpk_program *program, struct wpk_plan *plan)
{
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        int writer = wpk_program_writer(program, load.node->tensor);
        if (writer >= 0 && plan->group_of[writer] >= 0 && plan->group_of[load.reader] >= 0 &&
            plan->group_of[writer] != plan->group_of[load.reader]) {
            plan->feeds[plan->group_of[writer]][plan->group_of[load.reader]] = true;
        }
    }
}

/* From the output back: a consumer's group is known before what it reads is placed. Groups are
 * numbered backwards and turned round at the end. */
wpk_err wpk_plan_derive(const struct wpk_program *program, struct wpk_plan *out)
{
    memset(out, 0, sizeof(*out));
    out->group = calloc(WPK_GROUPS_MAX, sizeof(*out->group));
    if (out->group == NULL) {
        return WPK_ENOMEM;
    }
    wpk_program_mark_prepare(program, out->prepare);
    for (int s = program->stage_count - 1; s >= 0; s--) {
        int load = -1;
        out->group_of[s] = -1;
        if (out->prepare[s]) {
            continue;
        }
        int consumer = joins(program, s, &load);
        if (consumer >= 0) {
            int g = out->group_of[consumer];
            wpk_err err = add_member(program, &out->group[g], s, consumer, load);
            if (err != WPK_OK) {
                return err;
            }
            out->group_of[s] = g;
            continue;
        }
        if (program->stages[s].reduction != WPK_REDUCE_NONE) {
            return WPK_EUNSUPPORTED; /* not normalized */
        }
        if (out->group_count == WPK_GROUPS_MAX) {
            return WPK_ENOSPC;
        }
        out->group_of[s] = out->group_count;
        out->group[out->group_count++].root = s;
    }
    for (int g = 0; g < out->group_count / 2; g++) {
        struct wpk_group swapped = out->group[g];
        out->group[g] = out->group[out->group_count - 1 - g];
        out->group[out->group_count - 1 - g] = swapped;
    }
    for (int s = 0; s < program->stage_count; s++) {
        out->group_of[s] = out->group_of[s] < 0 ? -1 : out->group_count - 1 - out->group_of[s];
    }
    for (int g = 0; g < out->group_count; g++) {
        describe_group(program, &out->group[g]);
    }
    mark_feeds(program, out);
    size_t used = (size_t)out->group_count * sizeof(*out->group);
    struct wpk_group *trimmed = used == 0 ? NULL : realloc(out->group, used);
    out->group = trimmed != NULL ? trimmed : out->group;
    return out->group_count > 0 ? WPK_OK : WPK_EUNSUPPORTED;
}

void wpk_plan_fini(struct wpk_plan *plan)
{
    free(plan->group);
    memset(plan, 0, sizeof(*plan));
}

void wpk_plan_regions(const struct wpk_program *program, const struct wpk_group *group,
                      const int64_t *tile, int64_t region[][WPK_AXES_MAX])
{
    static const int64_t origin[WPK_AXES_MAX] = {0};
    for (int m = 0; m < group->member_count; m++) {
        const struct wpk_member *member = &group->member[m];
        const struct wpk_stage *stage = &program->stages[member->stage];
        int64_t of_consumer[WPK_AXES_MAX];
        memcpy(of_consumer, member->consumer < 0 ? tile : region[member->consumer],
               sizeof(of_consumer));
        for (int a = 0; a < WPK_AXES_MAX && member->in_sum; a++) {
            bool summed = a >= program->stages[group->member[member->consumer].stage].rank;
            of_consumer[a] = summed ? 1 : of_consumer[a];
        }
        for (int d = 0; d < stage->rank; d++) {
            int64_t low = 0, high = 0;
            wpk_index_range_in(program, program->nodes[member->load].index[d], origin, of_consumer,
                               &low, &high);
            region[m][d] =
                high - low + 1 < stage->axes[d].extent ? high - low + 1 : stage->axes[d].extent;
        }
        for (int a = stage->rank; a < stage->axis_count; a++) {
            region[m][a] = stage->axes[a].extent;
        }
    }
}
