/* SPDX-License-Identifier: Apache-2.0 */
/* The shape is that of a tensor of which a reduction reads each element once. A dimension with more
 * than one element has a place in it, 0, 1, ...; each axis of each stage is at a place. */
#include "ir/rows.h"

#include <string.h>

struct rows {
    const struct wpk_program *program;
    int rank;                                /* of the shape; 0: not known */
    int64_t extent[WPK_RANK_MAX];            /* [rank] */
    bool reduced[WPK_RANK_MAX];              /* [rank] */
    int place[WPK_STAGES_MAX][WPK_AXES_MAX]; /* -1: an axis of one element */
};

/* The shape of the tensor, and the place in it of each axis that the load reads by.
 * False: the load does not read each point of the stage once. */
static bool find_places(const struct wpk_program *p, const struct wpk_stage *stage,
                        const struct wpk_node *load, struct rows *found, int *place)
{
    const struct wpk_tensor *tensor = &p->tensors[load->tensor];

    found->rank = 0;
    for (int a = 0; a < stage->axis_count; a++) {
        place[a] = -1;
    }
    for (int d = 0; d < tensor->rank; d++) {
        int axis = wpk_index_axis(p, load->index[d]);
        if (tensor->extent[d] == 1) {
            continue;
        }
        if (axis < 0 || place[axis] >= 0 || stage->axes[axis].extent != tensor->extent[d]) {
            return false;
        }
        place[axis] = found->rank;
        found->extent[found->rank] = tensor->extent[d];
        found->reduced[found->rank++] = axis >= stage->rank;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        if (place[a] < 0 && stage->axes[a].extent > 1) {
            return false;
        }
    }
    return true;
}

static bool same_shape(const struct rows *a, const struct rows *b)
{
    return a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof(a->extent[0])) == 0 &&
           memcmp(a->reduced, b->reduced, (size_t)a->rank * sizeof(a->reduced[0])) == 0;
}

static bool add_reduction(struct rows *rows, int s)
{
    const struct wpk_stage *stage = &rows->program->stages[s];
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(rows->program, stage, loads, WPK_LOADS_MAX);

    for (int i = 0; i < count; i++) {
        struct rows found;
        if (find_places(rows->program, stage, &rows->program->nodes[loads[i]], &found,
                        rows->place[s])) {
            if (rows->rank > 0) {
                return same_shape(rows, &found);
            }
            rows->rank = found.rank;
            memcpy(rows->extent, found.extent, sizeof(found.extent));
            memcpy(rows->reduced, found.reduced, sizeof(found.reduced));
            return true;
        }
    }
    return false;
}

/* Place the axes of a stage without a reduction: they are the whole shape, or what is kept. */
static bool place_axes(struct rows *rows, int s, bool kept_only)
{
    const struct wpk_stage *stage = &rows->program->stages[s];
    int at = 0;

    for (int a = 0; a < stage->rank; a++) {
        rows->place[s][a] = -1;
        if (stage->axes[a].extent == 1) {
            continue;
        }
        while (kept_only && at < rows->rank && rows->reduced[at]) {
            at++;
        }
        if (at == rows->rank || rows->extent[at] != stage->axes[a].extent) {
            return false;
        }
        rows->place[s][a] = at++;
    }
    while (kept_only && at < rows->rank && rows->reduced[at]) {
        at++;
    }
    return at == rows->rank;
}

/* The stage reads of other stages only what is at its own place. */
static bool reads_own_row(const struct rows *rows, int s)
{
    const struct wpk_program *p = rows->program;
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(p, &p->stages[s], loads, WPK_LOADS_MAX);

    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &p->nodes[loads[i]];
        int writer = wpk_program_writer(p, load->tensor);
        for (int d = 0; writer >= 0 && d < p->tensors[load->tensor].rank; d++) {
            int axis = wpk_index_axis(p, load->index[d]);
            if (p->tensors[load->tensor].extent[d] > 1 &&
                (axis < 0 || rows->place[s][axis] != rows->place[writer][d])) {
                return false;
            }
        }
    }
    return true;
}

bool wpk_program_is_of_rows(const struct wpk_program *program)
{
    struct rows rows = {.program = program};
    bool fits = wpk_program_loads_fit(program);

    for (int s = 0; fits && s < program->stage_count; s++) {
        fits = program->stages[s].reduction == WPK_REDUCE_NONE || add_reduction(&rows, s);
    }
    for (int s = 0; fits && s < program->stage_count; s++) {
        fits = program->stages[s].reduction != WPK_REDUCE_NONE || place_axes(&rows, s, false) ||
               place_axes(&rows, s, true);
    }
    for (int s = 0; fits && s < program->stage_count; s++) {
        fits = reads_own_row(&rows, s);
    }
    return fits && rows.rank > 0;
}
