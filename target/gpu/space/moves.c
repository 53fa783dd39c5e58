/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/moves.h"

#include "common/cuda_machine.h"
#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

#define POINTS 64                          /* that are tried */
#define SECTOR (WPK_CUDA_SECTOR_BYTES / 4) /* elements */
#define RUN_MIN 16 /* neighbours in memory: two sectors or more, wherever they begin */

/* The place in a tensor that an element of the copy is read from. */
struct source {
    int64_t at; /* number of the element in the tensor's memory, whose first one has number 0 */
    bool inside;
};

bool wpk_cuda_moves_only(const struct wpk_program *program, int s)
{
    const struct wpk_stage *stage = &program->stages[s];
    return stage->reduction == WPK_REDUCE_NONE && program->nodes[stage->expr].kind == WPK_NODE_LOAD;
}

/* Without groups, which are not found yet: stages that move elements will be inlined. */
static bool is_inlined(const struct wpk_program *program, const struct wpk_cuda_groups *groups,
                       int s)
{
    return groups != NULL ? groups->group_of[s] == WPK_CUDA_INLINED
                          : wpk_cuda_moves_only(program, s);
}

/*   shape  point [WPK_AXES_MAX] of the node's stage */
static bool find_source(const struct wpk_program *program, const struct wpk_cuda_groups *groups,
                        int id, const int64_t *point, struct source *out)
{
    const struct wpk_node *node = &program->nodes[id];
    int64_t one[WPK_AXES_MAX], index[WPK_AXES_MAX] = {0}, last;
    if (node->kind != WPK_NODE_LOAD ||
        (node->outside >= 0 && !wpk_load_is_zero_outside(program, node))) {
        return false;
    }
    const struct wpk_tensor *t = &program->tensors[node->tensor];
    int writer = wpk_program_writer(program, node->tensor);
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        one[a] = 1;
    }
    out->at = 0;
    for (int d = 0; d < t->rank; d++) {
        wpk_index_range_in(program, node->index[d], point, one, &index[d], &last);
        out->inside = out->inside && index[d] >= -t->pad_before[d] &&
                      index[d] < t->extent[d] + t->pad_after[d];
        out->at = out->at * (t->pad_before[d] + t->extent[d] + t->pad_after[d]) + index[d] +
                  t->pad_before[d];
    }
    if (writer >= 0 && is_inlined(program, groups, writer)) {
        return find_source(program, groups, program->stages[writer].expr, index, out);
    }
    return t->dtype == WPK_F32 && t->role != WPK_ROLE_LITERAL;
}

static bool find(const struct wpk_program *program, const struct wpk_cuda_groups *groups, int s,
                 const int64_t *point, struct source *out)
{
    const struct wpk_stage *stage = &program->stages[s];
    *out = (struct source){.inside = true};
    return stage->reduction == WPK_REDUCE_NONE &&
           program->tensors[stage->output].dtype == WPK_F32 &&
           find_source(program, groups, stage->expr, point, out);
}

bool wpk_cuda_is_move(const struct wpk_program *program, const struct wpk_cuda_groups *groups,
                      int stage)
{
    const int64_t origin[WPK_AXES_MAX] = {0};
    struct source source;
    return find(program, groups, stage, origin, &source);
}

static bool are_together(const struct wpk_program *program, const struct wpk_cuda_groups *groups,
                         int s, const int64_t *point)
{
    int last = program->stages[s].rank - 1;
    int64_t next[WPK_AXES_MAX];
    struct source first, other;
    memcpy(next, point, sizeof(next));
    bool together = find(program, groups, s, point, &first) &&
                    (!first.inside || first.at % WPK_CUDA_VECTOR_ELEMENTS == 0);
    for (int64_t e = 1; e < WPK_CUDA_VECTOR_ELEMENTS && together; e++) {
        next[last]++;
        together = find(program, groups, s, next, &other) && other.inside == first.inside &&
                   other.at == first.at + e;
    }
    return together;
}

bool wpk_cuda_is_vector_move(const struct wpk_program *program,
                             const struct wpk_cuda_groups *groups, int s)
{
    const struct wpk_stage *stage = &program->stages[s];
    int64_t point[WPK_AXES_MAX] = {0};
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    bool together =
        stage->rank > 0 && stage->axes[stage->rank - 1].extent % WPK_CUDA_VECTOR_ELEMENTS == 0;
    for (int i = 0; i < POINTS && together; i++) {
        for (int a = 0; a < stage->rank; a++) {
            point[a] = (int64_t)wpk_rng_below(&rng, (uint64_t)stage->axes[a].extent);
        }
        point[stage->rank - 1] -= point[stage->rank - 1] % WPK_CUDA_VECTOR_ELEMENTS;
        together = are_together(program, groups, s, point);
    }
    return together;
}

/* Draw a point of the stage that has a neighbour along the axis, and find both; false: it is not
 * known where they are. */
static bool draw_neighbours(const struct wpk_program *program, int s, int load, int axis,
                            struct wpk_rng *rng, struct source *here, struct source *next)
{
    const struct wpk_stage *stage = &program->stages[s];
    int64_t point[WPK_AXES_MAX] = {0};
    for (int a = 0; a < stage->axis_count; a++) {
        uint64_t extent = (uint64_t)stage->axes[a].extent - (a == axis);
        point[a] = (int64_t)wpk_rng_below(rng, extent);
    }
    *here = *next = (struct source){.inside = true};
    bool known = find_source(program, NULL, load, point, here);
    point[axis]++;
    return known && find_source(program, NULL, load, point, next);
}

/* Of some points of a stage those whose neighbours along the axis are neighbours in memory. */
static int count_neighbours(const struct wpk_program *program, int s, int load, int axis)
{
    int neighbours = 0;
    struct source here, next;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < POINTS && program->stages[s].axes[axis].extent > 1; i++) {
        neighbours +=
            draw_neighbours(program, s, load, axis, &rng, &here, &next) && next.at == here.at + 1;
    }
    return neighbours;
}

double wpk_cuda_apart(const struct wpk_program *program, int s, int load, int axis)
{
    double sum = 0;
    struct source here, next;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < POINTS && program->stages[s].axes[axis].extent > 1; i++) {
        bool known = draw_neighbours(program, s, load, axis, &rng, &here, &next);
        int64_t apart = known ? llabs(next.at - here.at) : 1;
        sum += (double)(apart < SECTOR ? apart : SECTOR);
    }
    return sum > POINTS ? sum / POINTS : 1;
}

int wpk_cuda_contiguous_axis(const struct wpk_program *program, int s, int load)
{
    int found = -1, most = POINTS / 2;
    for (int a = 0; a < program->stages[s].axis_count; a++) {
        int neighbours = count_neighbours(program, s, load, a);
        if (neighbours > most) {
            most = neighbours;
            found = a;
        }
    }
    return found;
}

bool wpk_cuda_has_runs(const struct wpk_program *program, int s, int load, int axis)
{
    return count_neighbours(program, s, load, axis) * RUN_MIN >= POINTS * (RUN_MIN - 1);
}
