/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/groups.h"

#include "common/cuda_machine.h"
#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "target/gpu/space/moves.h"
#include "target/gpu/space/transforms.h"

#include <string.h>

#define INLINE_TIMES 2                /* computed so often, a pointwise stage is still inlined */
#define PART_RESULTS_MAX 16384        /* reductions with more results keep a GPU's threads busy */
#define PART_TERMS_MIN 64             /* shorter reductions are not cut */
#define SHARED_TERMS_MIN 32           /* shorter reductions are of one thread */
#define ORDERED_RESULTS_MIN (1 << 22) /* of fewer a GPU has all blocks in a wave or two */
#define TILE_EXTENT_MAX 16            /* of an axis that a transform needs whole */
#define FEW_ROWS 4                    /* so few read an operand hardly less often as a tile */
#define ROWS_MANY 64                  /* results that are many enough for few parts each */
#define ROW_PARTS_MAX 32              /* of each of those */
#define SCALAR_PARTS_MAX 16           /* of a single number: one thread adds them up in the end */
#define PARTS_MAX 256                 /* of a reduction: threads that share it */

int64_t wpk_cuda_tiles_along(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                             int axis)
{
    return (root->axes[axis].extent + group->tile[axis] - 1) / group->tile[axis];
}

/* ---- normalizing */

/* The pointwise stage that computes on with the reduction's result in its registers, or -1. */
static int find_reader(const struct wpk_program *program, int s)
{
    const struct wpk_stage *stage = &program->stages[s];
    if (program->tensors[stage->output].role == WPK_ROLE_OUTPUT) {
        return -1;
    }
    struct wpk_cuda_reading reading = wpk_cuda_read(program, stage->output);
    bool alone = reading.loads == 1 && reading.own_point;
    return alone && program->stages[reading.stage].reduction == WPK_REDUCE_NONE ? reading.stage
                                                                                : -1;
}

/* The reduction of the most work that the pointwise stage computes on with, or -1. */
static int find_sum(const struct wpk_program *program, int root)
{
    int found = -1;
    double most = 0;
    for (int s = 0; s < root; s++) {
        bool reduces = program->stages[s].reduction != WPK_REDUCE_NONE &&
                       wpk_cuda_transform_root(program, s) < 0;
        double points = wpk_stage_points(&program->stages[s]);
        if (reduces && points > most && find_reader(program, s) == root) {
            found = s;
            most = points;
        }
    }
    return found;
}

/* Give each reduction a reader; one that has one is followed by a copy if that computes on with
 * another reduction. The last stage comes first: whether a transform has a root depends on the
 * stages behind it. */
static wpk_err add_readers(struct wpk_program *program)
{
    bool prepare[WPK_STAGES_MAX];
    wpk_err err = WPK_OK;
    for (int s = program->stage_count - 1; s >= 0 && err == WPK_OK; s--) {
        wpk_program_mark_prepare(program, prepare);
        if (program->stages[s].reduction == WPK_REDUCE_NONE || prepare[s] ||
            wpk_cuda_transform_root(program, s) >= 0) {
            continue;
        }
        int reader = find_reader(program, s);
        if (reader < 0 || find_sum(program, reader) != s) {
            err = wpk_derive_copy_after(program, s, NULL);
        }
    }
    return err;
}

/* Deal out the terms of long reductions with few results, where threads cannot share them: a scalar
 * has no block, and a strict sum's threads have one part each. Neighbouring threads then read
 * neighbours in memory if the axis is contiguous. */
static wpk_err cut_reductions(struct wpk_program *program, bool strict)
{
    int count = program->stage_count;
    bool prepare[WPK_STAGES_MAX];
    wpk_err err = WPK_OK;
    wpk_program_mark_prepare(program, prepare);
    for (int s = count - 1; s >= 0 && err == WPK_OK; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        int longest = stage->rank;
        double results = wpk_stage_points_of(stage, 0, stage->rank);
        for (int a = stage->rank; a < stage->axis_count; a++) {
            longest = stage->axes[a].extent > stage->axes[longest].extent ? a : longest;
        }
        if (stage->reduction == WPK_REDUCE_NONE || prepare[s] || results > PART_RESULTS_MAX ||
            (stage->rank > 0 && !strict) || stage->axes[longest].extent < PART_TERMS_MIN ||
            stage->rank + 1 > WPK_RANK_MAX) {
            continue;
        }
        /* The number of parts that the axis's terms are dealt out to: a power of two. */
        int64_t extent = stage->axes[longest].extent;
        int64_t parts = !strict                ? SCALAR_PARTS_MAX
                        : results >= ROWS_MANY ? ROW_PARTS_MAX
                                               : PARTS_MAX;
        while (parts > 1 &&
               (extent % parts != 0 || results * (double)parts > 4 * PART_RESULTS_MAX)) {
            parts /= 2;
        }
        bool contraction = wpk_contraction_is(program, s) && stage->rank >= 2;
        if (parts > 1 && !contraction) {
            err = wpk_derive_split_reduction(program, s, longest, parts);
        }
    }
    return err;
}

/* The tensor is a pointwise stage's that the reduction alone reads, at axes: it may be staged. */
static bool is_copy(const struct wpk_program *program, int tensor)
{
    int writer = wpk_program_writer(program, tensor);
    struct wpk_cuda_reading reading = wpk_cuda_read(program, tensor);
    return program->tensors[tensor].role == WPK_ROLE_INTERMEDIATE && writer >= 0 &&
           program->stages[writer].reduction == WPK_REDUCE_NONE && find_sum(program, writer) < 0 &&
           wpk_cuda_transform_of(program, writer, NULL) < 0 && reading.loads == 1 &&
           reading.at_axes;
}

/* The next load of a contraction that is of no copy, -1: none. */
static int find_operand(const struct wpk_program *program, int s)
{
    bool prepare[WPK_STAGES_MAX];
    int found = -1;
    wpk_program_mark_prepare(program, prepare);
    for (struct wpk_loads it = wpk_loads_of(program, &program->stages[s]);
         wpk_loads_next(&it) && found < 0;) {
        int tensor = it.node->tensor, writer = wpk_program_writer(program, tensor);
        bool prepared = writer >= 0 && prepare[writer];
        found = prepared || !is_copy(program, tensor) ? it.id : -1;
    }
    return found;
}

/* How many loads of the reduction do not depend on the axis: a tile along it reads them once. */
static int count_reuse(const struct wpk_program *program, const struct wpk_stage *sum, int axis)
{
    int reuse = 0;
    for (struct wpk_loads load = wpk_loads_of(program, sum); wpk_loads_next(&load);) {
        reuse += !wpk_contraction_uses_axis(program, load.node, axis);
    }
    return reuse;
}

/* The axis that the copy of a load has last: the one along which neighbours lie in memory, or of a
 * constant, which is prepared in any order, one whose rows are whole moves of 16 bytes. */
static int last_of_copy(const struct wpk_program *program, int s, int load)
{
    const struct wpk_stage *stage = &program->stages[s];
    const struct wpk_node *node = &program->nodes[load];
    int last = wpk_cuda_contiguous_axis(program, s, load);
    bool constant = program->tensors[node->tensor].role == WPK_ROLE_CONSTANT;
    for (int a = 0; a < stage->rank && constant && last >= 0 &&
                    stage->axes[last].extent % WPK_CUDA_VECTOR_ELEMENTS != 0;
         a++) {
        bool moves = wpk_contraction_uses_axis(program, node, a) &&
                     count_reuse(program, stage, a) > 0 && /* else a block has one element */
                     stage->axes[a].extent % WPK_CUDA_VECTOR_ELEMENTS == 0;
        last = moves ? a : last;
    }
    return last;
}

/* Give the operands of each contraction copies. A constant that is not read at axes becomes a
 * prepared tensor first, which then gets a copy. */
static wpk_err copy_operands(struct wpk_program *program)
{
    wpk_err err = WPK_OK;
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        bool prepare[WPK_STAGES_MAX];
        wpk_program_mark_prepare(program, prepare);
        int operand = wpk_contraction_is(program, s) && !prepare[s] && program->stages[s].rank > 0
                          ? find_operand(program, s)
                          : wpk_cuda_transform_operand(program, s);
        if (operand < 0) {
            continue;
        }
        err = wpk_contraction_is(program, s)
                  ? wpk_derive_box(program, s, operand, WPK_CUDA_SECTOR_ELEMENTS)
                  : WPK_EUNSUPPORTED;
        if (err == WPK_EUNSUPPORTED) { /* it reads no windows, or their box */
            err = wpk_derive_gather(program, s, operand, last_of_copy(program, s, operand));
        }
        s = err == WPK_OK ? -1 : s; /* stages have moved */
        err = err == WPK_EUNSUPPORTED ? WPK_OK : err;
    }
    return err;
}

wpk_err wpk_cuda_groups_normalize(struct wpk_program *program, bool strict)
{
    wpk_err err = cut_reductions(program, strict);
    err = err == WPK_OK ? add_readers(program) : err;
    return err == WPK_OK ? copy_operands(program) : err;
}

/* ---- groups */

/* The operand's tile lies in shared memory, if it is staged. */
static bool is_operand(const struct wpk_program *program, int s, const struct wpk_cuda_group *group)
{
    const struct wpk_stage *stage = &program->stages[s];
    if (group->sum < 0 || !wpk_contraction_is(program, group->sum) ||
        stage->reduction != WPK_REDUCE_NONE ||
        program->tensors[stage->output].role != WPK_ROLE_INTERMEDIATE ||
        find_sum(program, s) >= 0 || wpk_cuda_transform_of(program, s, NULL) >= 0) {
        return false;
    }
    struct wpk_cuda_reading reading = wpk_cuda_read(program, stage->output);
    return reading.loads == 1 && reading.at_axes && reading.stage == group->sum;
}

/* How often the stage's expression is computed if all of its readers compute it anew.
 *   shape   computed [stage_count]: the same of later stages */
static double times_read(const struct wpk_program *program, int s, const double *computed)
{
    double times = 0;
    for (int r = s + 1; r < program->stage_count; r++) {
        for (struct wpk_loads load = wpk_loads_of(program, &program->stages[r]);
             wpk_loads_next(&load);) {
            bool reads = load.node->tensor == program->stages[s].output;
            times += reads ? computed[r] : 0;
        }
    }
    return times;
}

/* Threads along j read and write neighbours; along i they share operands. */
static void choose_axes(const struct wpk_program *program, bool strict,
                        struct wpk_cuda_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    const struct wpk_stage *sum = group->sum < 0 ? NULL : &program->stages[group->sum];
    int best = -1;
    group->i = -1;
    group->j = root->rank - 1;
    group->k = sum != NULL ? sum->rank : -1;
    while (group->j > 0 && root->axes[group->j].extent == 1) {
        group->j--;
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        /* an axis that windows do not move along comes first: a tile along it reads them once */
        int reuse = sum != NULL ? 2 * count_reuse(program, sum, a) +
                                      !wpk_cuda_is_windowed(program, group->sum, a)
                                : 0;
        if (a != group->j && root->axes[a].extent > 1 && reuse > best) {
            best = reuse;
            group->i = a;
        }
    }
    for (int a = group->k; sum != NULL && a < sum->axis_count; a++) {
        group->k = strict ? a : sum->axes[a].extent > sum->axes[group->k].extent ? a : group->k;
    }
}

/* A tile along both axes would read its operands less often. */
static bool is_tiled(const struct wpk_program *program, const struct wpk_cuda_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    const struct wpk_stage *sum = &program->stages[group->sum];
    return group->i >= 0 && wpk_contraction_is(program, group->sum) &&
           count_reuse(program, sum, group->i) > 0 && count_reuse(program, sum, group->j) > 0 &&
           root->axes[group->i].extent > FEW_ROWS && root->axes[group->j].extent > FEW_ROWS;
}

/* The largest operand decides which axis neighbouring threads run along. */
static void find_shares(const struct wpk_program *program, bool strict,
                        struct wpk_cuda_groups *groups, struct wpk_cuda_group *group)
{
    struct wpk_cuda_group shared = *group;
    int loads[WPK_LOADS_MAX], along = -1;
    double most = 0;
    if (group->sum < 0 || strict || group->j < 0 || is_tiled(program, group)) {
        return;
    }
    const struct wpk_stage *sum = &program->stages[group->sum];
    int count = wpk_stage_loads(program, sum, loads, WPK_LOADS_MAX);
    for (int l = 0; l < count && l < WPK_CUDA_STREAMS_MAX; l++) {
        struct wpk_cuda_stream *stream = &shared.stream[l];
        double elements = 1;
        stream->along = wpk_cuda_contiguous_axis(program, group->sum, loads[l]);
        for (int a = 0; a < sum->axis_count; a++) {
            if (wpk_contraction_uses_axis(program, &program->nodes[loads[l]], a)) {
                elements *= (double)sum->axes[a].extent;
                stream->axes |= 1U << a;
            }
        }
        along = elements > most ? stream->along : along;
        most = elements > most ? elements : most;
        shared.stream_count = l + 1;
    }
    shared.rows = along >= sum->rank;
    if (shared.rows && sum->axes[along].extent >= SHARED_TERMS_MIN) {
        shared.k = along;
    }
    if (sum->axes[shared.k].extent < SHARED_TERMS_MIN) {
        return;
    }
    for (int c = 0; c < shared.operand_count; c++) {
        groups->group_of[shared.operand[c].stage] = WPK_CUDA_INLINED;
    }
    shared.operand_count = 0;
    shared.kind = WPK_CUDA_SHARED;
    *group = shared;
}

/* An operand is read by one load, at axes. */
static void find_moves(const struct wpk_program *program, const struct wpk_cuda_groups *groups,
                       struct wpk_cuda_group *group)
{
    for (int c = 0; c < group->operand_count; c++) {
        struct wpk_cuda_operand *o = &group->operand[c];
        int tensor = program->stages[o->stage].output, last = program->tensors[tensor].rank - 1;
        o->load = wpk_cuda_read(program, tensor).load;
        o->along = wpk_index_axis(program, program->nodes[o->load].index[last]);
        bool by_j = wpk_contraction_uses_axis(program, &program->nodes[o->load], group->j);
        o->tiled = by_j ? group->j : group->i;
        o->apart = o->along == group->k || o->along < 0
                       ? 1
                       : wpk_cuda_apart(program, group->sum, o->load, o->along);
        o->gathers = !wpk_cuda_has_runs(program, group->sum, o->load, o->along);
        o->is_move = wpk_cuda_is_move(program, groups, o->stage);
        o->is_vector_move = o->is_move && wpk_cuda_is_vector_move(program, groups, o->stage);
    }
}

/* Threads run along the last axis that has several tiles, and along the one that has most. */
static void choose_tiled_axes(const struct wpk_program *program, struct wpk_cuda_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    int64_t most = 1;
    int transform = wpk_cuda_transform_of(program, group->root, group->tile);
    WPK_ASSERT(transform >= 0);
    group->i = group->j = group->k = -1;
    for (int a = root->rank - 1; a >= 0; a--) {
        int64_t tiles = wpk_cuda_tiles_along(root, group, a);
        if (group->j < 0 && tiles > 1) {
            group->j = a;
        } else if (tiles > most) {
            group->i = a;
            most = tiles;
        }
    }
}

/* Blocks that run at the same time read rows and columns of operands, which the second cache keeps
 * for them. */
static void find_order(const struct wpk_program *program, struct wpk_cuda_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    group->ordered = group->operand_count > 0 && group->i >= 0 &&
                     (double)root->axes[group->i].extent * (double)root->axes[group->j].extent >=
                         ORDERED_RESULTS_MIN;
}

/* Constants are prepared in f64, once. */
static bool has_type(const struct wpk_program *program, int tensor, const bool *prepare)
{
    enum wpk_dtype dtype = program->tensors[tensor].dtype;
    int writer = wpk_program_writer(program, tensor);
    bool once = program->tensors[tensor].role == WPK_ROLE_LITERAL ||
                (program->tensors[tensor].role == WPK_ROLE_INTERMEDIATE && prepare[writer]);
    return dtype == WPK_F32 || dtype == WPK_I32 || dtype == WPK_BOOL || (dtype == WPK_F64 && once);
}

/* The group whose operand the stage may be, or -1. */
static int find_taker(const struct wpk_program *program, int s, const struct wpk_cuda_groups *out)
{
    for (int g = 0; g < out->count; g++) {
        if (out->group[g].operand_count < WPK_CUDA_OPERANDS_MAX &&
            is_operand(program, s, &out->group[g])) {
            return g;
        }
    }
    return -1;
}

/* A stage of a chain of transforms belongs to the group of the chain's root. */
static bool find_in_chain(const struct wpk_program *program, int s, struct wpk_cuda_groups *out)
{
    bool copies = wpk_cuda_is_transform_copy(program, s);
    int reader = copies ? wpk_cuda_read(program, program->stages[s].output).stage : s;
    int root = wpk_cuda_transform_root(program, reader);
    bool moves = !copies && program->stages[s].reduction == WPK_REDUCE_NONE;
    if (root >= 0) {
        out->group_of[s] = moves ? WPK_CUDA_INLINED : out->group_of[root];
    }
    if (root >= 0 && copies) {
        struct wpk_cuda_group *group = &out->group[out->group_of[root]];
        int along = wpk_cuda_contiguous_axis(program, s, program->stages[s].expr);
        group->operand[0].gathers =
            along >= 0 && program->stages[s].axes[along].extent <= TILE_EXTENT_MAX;
        group->operand[0].stage = s;
        group->operand_count = 1;
    }
    return root >= 0;
}

static wpk_err find_backwards(const struct wpk_program *program, struct wpk_cuda_groups *out)
{
    double computed[WPK_STAGES_MAX];
    bool prepare[WPK_STAGES_MAX];
    wpk_program_mark_prepare(program, prepare);
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        enum wpk_role role = program->tensors[stage->output].role;
        double points = wpk_stage_points(stage);
        computed[s] = points;
        if (prepare[s]) {
            out->group_of[s] = WPK_CUDA_PREPARED;
            continue;
        }
        if (find_in_chain(program, s, out)) {
            continue;
        }
        if (stage->reduction != WPK_REDUCE_NONE) {
            out->group_of[s] = out->group_of[find_reader(program, s)];
            continue;
        }
        int transform = wpk_cuda_transform_of(program, s, NULL);
        int sum = find_sum(program, s), taker = find_taker(program, s, out);
        double times = times_read(program, s, computed);
        if (taker >= 0) {
            struct wpk_cuda_group *group = &out->group[taker];
            group->operand[group->operand_count++].stage = s;
            out->group_of[s] = taker;
            computed[s] = times;
        } else if (role == WPK_ROLE_INTERMEDIATE && sum < 0 && transform < 0 &&
                   (times <= INLINE_TIMES * points || wpk_cuda_moves_only(program, s))) {
            out->group_of[s] = WPK_CUDA_INLINED;
            computed[s] = times;
        } else if (out->count == WPK_CUDA_GROUPS_MAX) {
            return WPK_ENOSPC;
        } else {
            out->group_of[s] = out->count;
            out->group[out->count++] =
                (struct wpk_cuda_group){.kind = transform >= 0 ? WPK_CUDA_TRANSFORMS
                                                : sum >= 0     ? WPK_CUDA_PRODUCTS
                                                               : WPK_CUDA_POINTWISE,
                                        .root = s,
                                        .sum = sum,
                                        .whole = -1};
        }
    }
    return WPK_OK;
}

/* ---- rows */

/* Every load of the tensor is by a stage of the row's groups, and has the row's axes as they are.
 * An inlined stage passes the row on to its readers. */
static bool stays_in_row(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                         int tensor, const struct wpk_cuda_group *reader, int row_axes)
{
    for (int s = 0; s < program->stage_count; s++) {
        int g = all->group_of[s];
        for (struct wpk_loads load = wpk_loads_of(program, &program->stages[s]);
             wpk_loads_next(&load);) {
            bool same = load.node->outside < 0 && program->stages[s].rank >= row_axes;
            if (load.node->tensor != tensor) {
                continue;
            }
            for (int d = 0; d < row_axes && same; d++) {
                same = wpk_index_axis(program, load.node->index[d]) == d;
            }
            bool inside = g >= 0 && (&all->group[g] == reader || reader->in_row[g]);
            /* an inlined stage passes the row on to its readers */
            inside =
                inside || (g == WPK_CUDA_INLINED &&
                           stays_in_row(program, all, program->stages[s].output, reader, row_axes));
            if (!same || !inside) {
                return false;
            }
        }
    }
    return true;
}

/* True if a row's block may compute the group: its work is little more than its loads. */
static bool may_be_in_row(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                          int g, const struct wpk_cuda_group *reader, int row_axes)
{
    const struct wpk_cuda_group *group = &all->group[g];
    const struct wpk_stage *root = &program->stages[group->root];
    const struct wpk_stage *of = &program->stages[reader->root];
    bool same =
        root->rank >= row_axes && group->operand_count == 0 && group->kind != WPK_CUDA_TRANSFORMS;
    for (int a = 0; a < row_axes && same; a++) {
        same = root->axes[a].extent == of->axes[a].extent;
    }
    return same && program->tensors[root->output].role == WPK_ROLE_INTERMEDIATE &&
           stays_in_row(program, all, root->output, reader, row_axes);
}

static void find_rows(const struct wpk_program *program, struct wpk_cuda_groups *all, int g)
{
    struct wpk_cuda_group *group = &all->group[g];
    for (int axes = program->stages[group->root].rank - 1;
         axes > 0 && group->kind == WPK_CUDA_POINTWISE; axes--) {
        for (int other = g - 1; other >= 0; other--) {
            group->in_row[other] = may_be_in_row(program, all, other, group, axes);
            group->kind = group->in_row[other] ? WPK_CUDA_ROWS : group->kind;
        }
        group->row_axes = axes;
    }
}

wpk_err wpk_cuda_groups_find(const struct wpk_program *program, bool strict,
                             struct wpk_cuda_groups *out)
{
    bool prepare[WPK_STAGES_MAX];
    wpk_program_mark_prepare(program, prepare);
    memset(out, 0, sizeof(*out));
    for (int t = 0; t < program->tensor_count; t++) {
        if (!has_type(program, t, prepare)) {
            return WPK_EUNSUPPORTED;
        }
    }
    wpk_err err = find_backwards(program, out);
    if (err != WPK_OK) {
        return err;
    }
    /* Groups were found from the last launch on. */
    for (int g = 0; g < out->count / 2; g++) {
        struct wpk_cuda_group first = out->group[g];
        out->group[g] = out->group[out->count - 1 - g];
        out->group[out->count - 1 - g] = first;
    }
    for (int s = 0; s < program->stage_count; s++) {
        int group = out->group_of[s];
        out->group_of[s] = group < 0 ? group : out->count - 1 - group;
    }
    for (int g = 0; g < out->count; g++) {
        if (out->group[g].kind == WPK_CUDA_TRANSFORMS) {
            choose_tiled_axes(program, &out->group[g]);
        } else {
            choose_axes(program, strict, &out->group[g]);
            find_shares(program, strict, out, &out->group[g]);
            find_moves(program, out, &out->group[g]);
            find_order(program, &out->group[g]);
        }
        find_rows(program, out, g);
    }
    wpk_cuda_find_joins(program, out);
    for (int g = 0; g < out->count; g++) {
        if (out->group[g].kind == WPK_CUDA_PRODUCTS && !strict) {
            wpk_cuda_find_box(program, out, &out->group[g]); /* a step has all of a window first */
        }
    }
    return WPK_OK;
}
