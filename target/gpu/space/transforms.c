/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/transforms.h"

#include "ir/derive/extract.h"
#include "search/reuse.h"

#define TERMS_MAX 16 /* of one sum */
#define TILE_MAX 64  /* elements of a thread: 8 x 8 */

bool wpk_cuda_is_transform(const struct wpk_program *program, int s)
{
    const struct wpk_stage *stage = &program->stages[s];
    bool literal[WPK_AXES_MAX], prepare[WPK_STAGES_MAX];
    int64_t terms = 1;
    if (stage->reduction != WPK_REDUCE_SUM || !wpk_reuse_mark_tables(program, stage, literal)) {
        return false;
    }
    wpk_program_mark_prepare(program, prepare);
    for (int a = stage->rank; a < stage->axis_count; a++) {
        terms *= literal[a] ? stage->axes[a].extent : TERMS_MAX + 1;
    }
    return !prepare[s] && terms <= TERMS_MAX;
}

/* The stage only says where its reader, which is one load, finds values of another tensor. */
static bool moves_only(const struct wpk_program *program, const struct wpk_stage *stage)
{
    const struct wpk_node *load = &program->nodes[stage->expr];
    return stage->reduction == WPK_REDUCE_NONE && load->kind == WPK_NODE_LOAD &&
           load->outside < 0 && program->tensors[stage->output].role == WPK_ROLE_INTERMEDIATE &&
           wpk_cuda_read(program, stage->output).loads == 1;
}

/* The transform that alone is read by the load, or a stage that moves the values of one; -1: there
 * is none. */
static int chained(const struct wpk_program *program, const struct wpk_node *load)
{
    int writer = wpk_program_writer(program, load->tensor);
    bool alone = writer >= 0 && load->outside < 0 &&
                 program->tensors[load->tensor].role == WPK_ROLE_INTERMEDIATE &&
                 wpk_cuda_read(program, load->tensor).loads == 1;
    if (!alone) {
        return -1;
    }
    const struct wpk_stage *stage = &program->stages[writer];
    bool moves = moves_only(program, stage) && chained(program, &program->nodes[stage->expr]) >= 0;
    return moves || wpk_cuda_is_transform(program, writer) ? writer : -1;
}

/* Mark the axes of a chained stage's result that a thread needs whole: those of its literals, and
 * those that the stages before it need. False: one of those is read at an index that is no axis.
 *   shape   whole [WPK_AXES_MAX] */
static bool mark_whole(const struct wpk_program *program, int s, bool *whole)
{
    const struct wpk_stage *stage = &program->stages[s];
    bool known = true;
    (void)wpk_reuse_mark_tables(program, stage, whole);
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load) && known;) {
        bool before[WPK_AXES_MAX];
        int first = chained(program, load.node);
        known = first < 0 || mark_whole(program, first, before);
        for (int d = 0; first >= 0 && known && d < program->stages[first].rank; d++) {
            int axis = wpk_index_axis(program, load.node->index[d]);
            known = !before[d] || axis >= 0;
            if (known && before[d]) {
                whole[axis] = true;
            }
        }
    }
    return known;
}

/* The axis and the period of an index "axis" or "axis % period"; false: it is neither. */
static bool read_period(const struct wpk_program *program, const struct wpk_stage *stage, int index,
                        int *axis, int64_t *period)
{
    const struct wpk_node *node = &program->nodes[index];
    *axis = wpk_index_axis(program, index);
    if (*axis >= 0) {
        *period = stage->axes[*axis].extent;
        return true;
    }
    if (node->kind != WPK_NODE_BINARY || node->op != WPK_BINARY_MOD ||
        program->nodes[node->arg[1]].kind != WPK_NODE_LITERAL) {
        return false;
    }
    *axis = wpk_index_axis(program, node->arg[0]);
    *period = program->nodes[node->arg[1]].integer;
    return *axis >= 0;
}

static bool find_tile(const struct wpk_program *program, int root, const struct wpk_node *load,
                      int transform, int64_t *tile)
{
    const struct wpk_stage *stage = &program->stages[root], *last = &program->stages[transform];
    bool whole[WPK_AXES_MAX];
    int64_t elements = 1;
    bool known = mark_whole(program, transform, whole);
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        tile[a] = 1;
    }
    for (int d = 0; d < last->rank && known; d++) {
        int axis = -1;
        int64_t period = 0;
        if (!whole[d]) {
            continue;
        }
        known = read_period(program, stage, load->index[d], &axis, &period) &&
                period == last->axes[d].extent && tile[axis] == 1;
        if (known) {
            tile[axis] = period;
            elements *= last->axes[d].extent;
        }
    }
    return known && elements <= TILE_MAX;
}

/* A thread can compute a tile of the pointwise stage, with what it reads of the chained one. */
static bool is_tiled(const struct wpk_program *program, int root, int chain, int64_t *tile)
{
    struct wpk_cuda_reading reading = wpk_cuda_read(program, program->stages[chain].output);
    return reading.stage == root && program->stages[root].reduction == WPK_REDUCE_NONE &&
           find_tile(program, root, &program->nodes[reading.load], chain, tile);
}

int wpk_cuda_transform_root(const struct wpk_program *program, int s)
{
    const struct wpk_stage *stage = &program->stages[s];
    struct wpk_cuda_reading reading = wpk_cuda_read(program, stage->output);
    int64_t tile[WPK_AXES_MAX];
    bool moves = moves_only(program, stage) && chained(program, &program->nodes[stage->expr]) >= 0;
    if (reading.loads != 1 || (!moves && !wpk_cuda_is_transform(program, s)) ||
        program->nodes[reading.load].outside >= 0) {
        return -1;
    }
    bool on = wpk_cuda_is_transform(program, reading.stage) ||
              moves_only(program, &program->stages[reading.stage]);
    int root = on ? wpk_cuda_transform_root(program, reading.stage) : -1;
    if (root >= 0) {
        return root;
    }
    /* A stage that only moves values of a transform is its root if no later stage can be. */
    bool ends = !moves || !moves_only(program, &program->stages[reading.stage]);
    return ends && is_tiled(program, reading.stage, s, tile) ? reading.stage : -1;
}

int wpk_cuda_transform_of(const struct wpk_program *program, int root, int64_t *tile)
{
    int64_t unused[WPK_AXES_MAX];
    int loads[WPK_LOADS_MAX], found = -1;
    const struct wpk_stage *stage = &program->stages[root];
    int count = stage->reduction == WPK_REDUCE_NONE
                    ? wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX)
                    : 0;
    for (int l = 0; l < count && found < 0; l++) {
        int chain = chained(program, &program->nodes[loads[l]]);
        bool ends = chain >= 0 && wpk_cuda_transform_root(program, chain) == root;
        found = ends && is_tiled(program, root, chain, tile != NULL ? tile : unused) ? chain : -1;
    }
    return found;
}

int wpk_cuda_transform_operand(const struct wpk_program *program, int s)
{
    int loads[WPK_LOADS_MAX], found = -1;
    int count = wpk_cuda_is_transform(program, s)
                    ? wpk_stage_loads(program, &program->stages[s], loads, WPK_LOADS_MAX)
                    : 0;
    for (int l = 0; l < count; l++) {
        found = program->nodes[loads[l]].outside >= 0 ? loads[l] : found;
    }
    return found;
}

bool wpk_cuda_is_transform_copy(const struct wpk_program *program, int s)
{
    const struct wpk_stage *stage = &program->stages[s];
    const struct wpk_node *load = &program->nodes[stage->expr];
    struct wpk_cuda_reading reading = wpk_cuda_read(program, stage->output);
    return stage->reduction == WPK_REDUCE_NONE && load->kind == WPK_NODE_LOAD &&
           load->outside >= 0 && program->tensors[stage->output].role == WPK_ROLE_INTERMEDIATE &&
           reading.loads == 1 && reading.at_axes && wpk_cuda_is_transform(program, reading.stage);
}

/* The load reads its tensor at the stage's own point. */
static bool is_own_point(const struct wpk_program *program, const struct wpk_node *load)
{
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        if (wpk_index_axis(program, load->index[d]) != d) {
            return false;
        }
    }
    return load->outside < 0;
}

static bool is_at_axes(const struct wpk_program *program, const struct wpk_node *load)
{
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        if (wpk_index_axis(program, load->index[d]) < 0) {
            return false;
        }
    }
    return true;
}

struct wpk_cuda_reading wpk_cuda_read(const struct wpk_program *program, int tensor)
{
    struct wpk_cuda_reading found = {.stage = -1, .load = -1, .own_point = true, .at_axes = true};
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        if (load.node->tensor == tensor) {
            bool own = is_own_point(program, load.node) &&
                       load.stage->rank == program->tensors[tensor].rank;
            found.loads++;
            found.stage = load.reader;
            found.load = load.id;
            found.own_point = found.own_point && own;
            found.at_axes = found.at_axes && is_at_axes(program, load.node);
        }
    }
    return found;
}
