/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products whose terms join one after the other, in the order of the reduction axes, and
 * round each time.
 *
 * Lanes along an output axis keep that order by themselves: each lane has a point of its own. Lanes
 * along the last reduction axis hold consecutive terms, which are folded step by step. Lanes along
 * another reduction axis hold terms that lie apart: they wait in `terms` until all are there. */
#include "ir/reference/tape.h"

#include <math.h>
#include <stdlib.h>

#define TERMS_MAX ((int64_t)1 << 22) /* 32 MiB of doubles */

static bool sums_f32(const struct wpk_tape *tape)
{
    return tape->stage->reduction == WPK_REDUCE_SUM && tape->stage->accumulator == WPK_F32;
}

static int64_t count_terms(const struct wpk_stage *stage)
{
    int64_t count = 1;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        count = count > TERMS_MAX ? count : count * stage->axes[a].extent;
    }
    return count;
}

wpk_err wpk_order_new(struct wpk_tape *tape)
{
    const struct wpk_stage *stage = tape->stage;
    if (!tape->ordered || !wpk_order_lane_is_reduced(tape) ||
        tape->lane_axis == stage->axis_count - 1) {
        return WPK_OK;
    }
    WPK_ASSERT(count_terms(stage) <= TERMS_MAX);
    int64_t stride = 1;
    for (int a = stage->axis_count - 1; a >= stage->rank; a--) {
        tape->term_stride[a] = stride;
        stride *= stage->axes[a].extent;
    }
    tape->term_count = stride;
    tape->terms = malloc((size_t)stride * sizeof *tape->terms);
    return tape->terms != NULL ? WPK_OK : WPK_ENOMEM;
}

static double identity(const struct wpk_tape *tape)
{
    return tape->stage->reduction == WPK_REDUCE_PROD ? 1.0 : 0.0;
}

void wpk_order_begin(struct wpk_tape *tape)
{
    tape->total = identity(tape);
    for (int i = 0; i < tape->lanes_most; i++) {
        tape->sum[i] = identity(tape);
        tape->sum_f32[i] = 0.0f;
    }
}

static void add_terms(struct wpk_tape *tape, const double *row)
{
    const struct wpk_stage *stage = tape->stage;
    if (!wpk_order_lane_is_reduced(tape)) {
        wpk_lanes_join(stage->reduction, stage->accumulator, tape->lanes, row, tape->sum);
        return;
    }
    if (tape->terms == NULL) {
        tape->total =
            wpk_lanes_fold(stage->reduction, stage->accumulator, tape->lanes, row, tape->total);
        return;
    }
    double *at = tape->terms;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        at += tape->axis_value[a] * tape->term_stride[a];
    }
    for (int i = 0; i < tape->lanes; i++) {
        at[i * tape->term_stride[tape->lane_axis]] = row[i];
    }
}

void wpk_order_add(struct wpk_tape *tape, const double *a, const double *b)
{
    if (b == NULL) {
        add_terms(tape, a);
        return;
    }
    bool uniform = tape->sparse; /* the first factor is one number */
    if (!wpk_order_lane_is_reduced(tape) && sums_f32(tape)) {
        wpk_lanes_multiply_add_f32(tape->lanes, uniform, a, b, tape->sum_f32);
        return;
    }
    double row[WPK_TAPE_LANES];
    for (int i = 0; i < tape->lanes; i++) {
        row[i] = a[uniform ? 0 : i] * b[i];
    }
    wpk_lanes_round(tape->stage->accumulator, tape->lanes, row);
    add_terms(tape, row);
}

void wpk_order_end(struct wpk_tape *tape)
{
    const struct wpk_stage *stage = tape->stage;
    if (tape->terms != NULL) {
        tape->total = wpk_lanes_fold(stage->reduction, stage->accumulator, tape->term_count,
                                     tape->terms, identity(tape));
    }
    if (wpk_order_lane_is_reduced(tape)) {
        tape->sum[0] = tape->total;
    } else if (sums_f32(tape) && tape->factor[1] >= 0) {
        for (int i = 0; i < tape->lanes; i++) {
            tape->sum[i] = (double)tape->sum_f32[i];
        }
    }
}

/* Which axis of a stage runs through the lanes. */

/* Measured roughly, in ns: a step of the loop nest with its uniform work, then one lane of a load
 * by how its elements lie. Only the order of the axes depends on them. */
#define COST_STEP 40.0
#define COST_CONTIGUOUS 0.5
#define COST_STRIDED 3.0
#define COST_GATHERED 15.0
/* A term that waits for the sum of those before it: an addition's latency. */
#define COST_ORDERED 1.5
/* A copy of the tensor pays when each element is read at least so often. */
#define PACK_REUSE 4
/* Elements of a copy that many runs share: 64 MiB of doubles. */
#define PACK_ELEMENTS_MAX ((int64_t)1 << 23)

static bool depends_on(const struct wpk_program *program, int node, int axis)
{
    bool axes[WPK_AXES_MAX] = {false};
    wpk_node_walk(program, node, true, wpk_node_mark_axis, axes);
    return axes[axis];
}

int wpk_tape_dim_to_pack(const struct wpk_program *program, const struct wpk_node *load, int axis,
                         const struct wpk_tape_use *use, int64_t iterations)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int found = -1;
    for (int d = 0; d < tensor->rank; d++) {
        struct wpk_affine affine;
        if (!wpk_index_affine(program, load->index[d], &affine)) {
            if (depends_on(program, load->index[d], axis)) {
                return -1;
            }
        } else if (affine.coefficient[axis] != 0) {
            if (found >= 0 || affine.coefficient[axis] != 1) {
                return -1;
            }
            found = d;
        }
    }
    int64_t elements = wpk_tensor_elements(tensor);
    bool shared = use->regions[load->tensor].fixed && elements <= PACK_ELEMENTS_MAX;
    bool pays =
        (double)elements * PACK_REUSE <= (double)iterations * (shared ? (double)use->runs : 1.0);
    return found >= 0 && found < tensor->rank - 1 && pays ? found : -1;
}

static double load_cost(const struct wpk_program *program, const struct wpk_node *load, int axis,
                        const struct wpk_tape_use *use, int64_t iterations)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int64_t stride = 0;
    int64_t dense = 1;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        struct wpk_affine affine;
        if (wpk_index_affine(program, load->index[d], &affine)) {
            stride += affine.coefficient[axis] * dense;
        } else if (depends_on(program, load->index[d], axis)) {
            return COST_GATHERED;
        }
        dense *= tensor->extent[d];
    }
    if (stride == 0) {
        return 0.0;
    }
    bool contiguous =
        stride == 1 || wpk_tape_dim_to_pack(program, load, axis, use, iterations) >= 0;
    return contiguous ? COST_CONTIGUOUS : COST_STRIDED;
}

int wpk_tape_lane_axis(const struct wpk_program *program, const struct wpk_stage *stage,
                       const struct wpk_tape_use *use, bool ordered, int *loads)
{
    const int64_t *extent = use->extent;
    int load_count = wpk_stage_loads(program, stage, loads, program->node_count);
    int64_t iterations = 1;
    int64_t points = 1;
    for (int a = 0; a < stage->axis_count; a++) {
        iterations *= extent[a];
        points *= a < stage->rank ? extent[a] : 1;
    }
    int best = -1;
    double best_cost = INFINITY;
    for (int a = 0; a < stage->axis_count; a++) {
        double lanes = (double)(extent[a] < WPK_TAPE_LANES ? extent[a] : WPK_TAPE_LANES);
        double cost = COST_STEP * (1 + load_count) / lanes;
        for (int i = 0; i < load_count; i++) {
            cost += load_cost(program, &program->nodes[loads[i]], a, use, iterations);
        }
        bool last = a == stage->axis_count - 1;
        if (a >= stage->rank && ordered) {
            cost += last ? COST_ORDERED : COST_ORDERED + COST_STRIDED;
            cost = last || count_terms(stage) <= TERMS_MAX ? cost : (double)INFINITY;
        } else if (a >= stage->rank) {
            cost += 2.0 * lanes * (double)points / (double)iterations; /* adding up the lanes */
        } else if (stage->reduction == WPK_REDUCE_NONE && a != stage->rank - 1) {
            cost += COST_STRIDED; /* strided stores */
        }
        if (cost < best_cost) {
            best_cost = cost;
            best = a;
        }
    }
    return best;
}
