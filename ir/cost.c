/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/cost.h"

#include "ir/data_index.h"

#include <stdlib.h>
#include <string.h>

/* Operations in one evaluation of the expression, each distinct node once; casts, loads and what
 * computes their indices are free. `seen` may be NULL: then a shared node counts once per path. */
static double count_operations(const struct wpk_program *program, int node, bool *seen)
{
    const struct wpk_node *n = &program->nodes[node];
    if (n->arg[0] < 0 || (seen != NULL && seen[node])) {
        return 0.0;
    }
    if (seen != NULL) {
        seen[node] = true;
    }
    double count = n->kind == WPK_NODE_CAST ? 0.0 : 1.0;
    for (int i = 0; i < 3 && n->arg[i] >= 0; i++) {
        count += count_operations(program, n->arg[i], seen);
    }
    return count;
}

void wpk_stage_cost(const struct wpk_program *program, int stage_index, struct wpk_cost *out)
{
    const struct wpk_stage *stage = &program->stages[stage_index];
    const struct wpk_tensor *output = &program->tensors[stage->output];
    bool reduces = stage->reduction != WPK_REDUCE_NONE;
    double iterations = wpk_stage_points(stage);
    double bytes = (double)wpk_tensor_elements(output) * (double)wpk_dtype_size(output->dtype);
    /* Without memory for it the count is an upper bound, which beats failing. */
    bool *seen = calloc((size_t)program->node_count + 1, sizeof *seen);
    double operations = count_operations(program, stage->expr, seen);
    free(seen);
    *out = (struct wpk_cost){.flops = iterations * (operations + (reduces ? 1.0 : 0.0)),
                             .iterations = iterations,
                             .elements = (double)wpk_tensor_elements(output)};
    if (output->role == WPK_ROLE_INTERMEDIATE) {
        out->bytes_intermediate = bytes;
    }
}

/* Elements of a tensor that are read. */
struct reading {
    const struct wpk_stage *stage;
    int tensor;
    double elements;
};

/* A load at indices that are data reads an element at each point of its axes, others read all. */
static void add_load(const struct wpk_program *program, int node, void *user)
{
    struct reading *reading = user;
    const struct wpk_node *load = &program->nodes[node];
    if (load->kind != WPK_NODE_LOAD || load->tensor != reading->tensor) {
        return;
    }
    double elements = wpk_load_gathers(program, load) ? 1 : (double)WPK_ELEMENTS_MAX;
    bool axes[WPK_AXES_MAX] = {false};
    wpk_node_walk(program, node, true, wpk_node_mark_axis, axes);
    for (int a = 0; a < reading->stage->axis_count; a++) {
        elements *= axes[a] ? (double)reading->stage->axes[a].extent : 1;
    }
    reading->elements += elements;
}

static double elements_read(const struct wpk_program *program, int tensor)
{
    struct reading reading = {.tensor = tensor};
    double all = (double)wpk_tensor_elements(&program->tensors[tensor]);
    for (int s = 0; s < program->stage_count && wpk_tensor_gathers(program, tensor); s++) {
        reading.stage = &program->stages[s];
        wpk_node_walk(program, reading.stage->expr, false, add_load, &reading);
    }
    return reading.elements > 0 && reading.elements < all ? reading.elements : all;
}

void wpk_cost(const struct wpk_program *program, struct wpk_cost *out)
{
    struct wpk_cost sum = {0};
    for (int s = 0; s < program->stage_count; s++) {
        struct wpk_cost stage;
        wpk_stage_cost(program, s, &stage);
        sum.flops += stage.flops;
        sum.iterations += stage.iterations;
        sum.elements += stage.elements;
        sum.bytes_intermediate += stage.bytes_intermediate;
    }
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        double bytes = elements_read(program, t) * (double)wpk_dtype_size(tensor->dtype);
        if (wpk_tensor_is_given(tensor) || tensor->role == WPK_ROLE_OUTPUT) {
            sum.bytes_min += bytes;
        }
        if (tensor->role == WPK_ROLE_CONSTANT) {
            sum.bytes_constants += bytes;
        }
    }
    *out = sum;
}

double wpk_cost_memory_bytes(const struct wpk_cost *cost, enum wpk_conditions conditions,
                             double cache_bytes)
{
    double cold = conditions == WPK_CONDITIONS_COLD             ? cost->bytes_min
                  : conditions == WPK_CONDITIONS_COLD_CONSTANTS ? cost->bytes_constants
                                                                : 0;
    double warm = cost->bytes_min - cold;
    return cold + (warm > cache_bytes ? warm : 0);
}

double wpk_cost_roofline_ns(const struct wpk_cost *cost, double memory_bytes,
                            const struct wpk_roofline *roofline)
{
    WPK_ASSERT(roofline->flops_per_s > 0.0);
    WPK_ASSERT(roofline->bytes_per_s > 0.0);
    double compute = cost->flops / roofline->flops_per_s;
    double traffic = memory_bytes / roofline->bytes_per_s;
    return 1e9 * (compute > traffic ? compute : traffic);
}

/* The shape is that of a tensor of which a reduction reads each element once. A dimension with more
 * than one element has a place in it, 0, 1, ...; each axis of each stage is at a place. */

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
    for (struct wpk_loads load = wpk_loads_of(rows->program, stage); wpk_loads_next(&load);) {
        struct rows found;
        if (find_places(rows->program, stage, load.node, &found, rows->place[s])) {
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
    for (struct wpk_loads load = wpk_loads_of(p, &p->stages[s]); wpk_loads_next(&load);) {
        int writer = wpk_program_writer(p, load.node->tensor);
        for (int d = 0; writer >= 0 && d < p->tensors[load.node->tensor].rank; d++) {
            int axis = wpk_index_axis(p, load.node->index[d]);
            if (p->tensors[load.node->tensor].extent[d] > 1 &&
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
