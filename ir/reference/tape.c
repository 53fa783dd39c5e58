/* SPDX-License-Identifier: Apache-2.0 */
/* Running a tape: the loop nest, the loads, the accumulator. */
#include "ir/reference/tape.h"

#include "ir/node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t wpk_region_set_dense(struct wpk_region *region, int rank)
{
    int64_t elements = 1;
    for (int d = rank - 1; d >= 0; d--) {
        region->stride[d] = elements;
        elements *= region->extent[d];
    }
    return elements;
}

/* ---- instructions */

static struct wpk_lanes lanes_of(const struct wpk_tape *tape, int slot)
{
    if (slot < 0) {
        return (struct wpk_lanes){NULL, NULL};
    }
    return (struct wpk_lanes){tape->slots[slot].value, tape->slots[slot].magnitude};
}

static void execute_simple(const struct wpk_tape *tape, const struct wpk_tape_instruction *ins,
                           struct wpk_tape_slot *slot)
{
    if (ins->kind == WPK_TAPE_BROADCAST) {
        struct wpk_lanes from = lanes_of(tape, ins->arg[0]);
        /* All of them: it may have been hoisted out of the loop that sets how many are in use. */
        wpk_tape_fill(slot->value_own, from.value[0], tape->lanes_most);
        if (tape->with_magnitude) {
            wpk_tape_fill(slot->magnitude_own, from.magnitude[0], tape->lanes_most);
        }
        return;
    }
    bool axis = ins->kind == WPK_TAPE_AXIS;
    int count = axis && ins->lanes ? tape->lanes : 1;
    for (int i = 0; i < count; i++) {
        slot->value_own[i] = axis ? wpk_cell_of(tape->axis_value[ins->axis] + i) : ins->literal;
        slot->magnitude_own[i] = wpk_reference_magnitude(ins->dtype, slot->value_own[i]);
    }
}

static void execute_cast(const struct wpk_tape_instruction *ins, int count, struct wpk_lanes a,
                         double *value, double *magnitude)
{
    for (int i = 0; i < count; i++) {
        value[i] = wpk_reference_cast(ins->from, ins->dtype, a.value[i]);
    }
    if (ins->rounds && ins->from == WPK_I64 && ins->dtype == WPK_F32) { /* once, not twice */
        for (int i = 0; i < count; i++) {
            value[i] = (double)(float)wpk_cell_integer(a.value[i]);
        }
    }
    for (int i = 0; magnitude != NULL && i < count; i++) {
        magnitude[i] =
            wpk_reference_cast_magnitude(ins->from, ins->dtype, a.value[i], a.magnitude[i]);
    }
}

static uint64_t axis_step(int axis)
{
    return wpk_lanes_mix((uint64_t)axis) | 1;
}

/* The error of a function is drawn from the set, the node and the axes that the node depends on,
 * whichever of them runs through the lanes. */
static void move(const struct wpk_tape *tape, const struct wpk_tape_instruction *ins, int count,
                 double *value)
{
    uint64_t hash = wpk_lanes_mix(tape->seed) + wpk_lanes_mix(~ins->salt);
    for (int a = 0; a < tape->stage->axis_count; a++) {
        if ((ins->axes >> a & 1u) != 0) {
            hash += axis_step(a) * (uint64_t)tape->axis_value[a];
        }
    }
    bool unary = ins->kind == WPK_TAPE_UNARY;
    bool bounded = unary && (ins->op == WPK_UNARY_TANH || ins->op == WPK_UNARY_ERF ||
                             ins->op == WPK_UNARY_SIGMOID || ins->op == WPK_UNARY_SIN ||
                             ins->op == WPK_UNARY_COS);
    wpk_lanes_move(ins->dtype, count, hash, ins->lanes ? axis_step(tape->lane_axis) : 0,
                   bounded ? 1.0 : (double)INFINITY, value);
}

static void execute_binary(const struct wpk_tape_instruction *ins, int count, struct wpk_lanes a,
                           struct wpk_lanes b, double *value, double *magnitude)
{
    if (ins->from == WPK_I64) {
        wpk_lanes_binary_i64((enum wpk_binary)ins->op, count, a, b, value, magnitude);
    } else if (ins->rounds && ins->op == WPK_BINARY_MOD) {
        wpk_lanes_modulo(ins->dtype, count, a.value, b.value, value);
    } else {
        wpk_lanes_binary((enum wpk_binary)ins->op, ins->dtype, count, a, b, value, magnitude);
    }
}

static void execute(struct wpk_tape *tape, int slot_index)
{
    const struct wpk_tape_instruction *ins = &tape->instructions[slot_index];
    struct wpk_tape_slot *slot = &tape->slots[slot_index];
    int count = ins->lanes ? tape->lanes : 1;
    double *value = slot->value_own;
    double *magnitude = tape->with_magnitude ? slot->magnitude_own : NULL;
    struct wpk_lanes a = lanes_of(tape, ins->arg[0]);
    switch (ins->kind) {
    case WPK_TAPE_LITERAL:
    case WPK_TAPE_AXIS:
    case WPK_TAPE_BROADCAST:
        execute_simple(tape, ins, slot);
        return;
    case WPK_TAPE_LOAD:
        wpk_tape_load(tape, ins, slot);
        return;
    case WPK_TAPE_UNARY:
        if (ins->dtype == WPK_I64) {
            wpk_lanes_unary_i64((enum wpk_unary)ins->op, count, a, value, magnitude);
        } else {
            wpk_lanes_unary((enum wpk_unary)ins->op, count, a, value, magnitude);
        }
        break;
    case WPK_TAPE_BINARY:
        execute_binary(ins, count, a, lanes_of(tape, ins->arg[1]), value, magnitude);
        break;
    case WPK_TAPE_SELECT:
        wpk_lanes_select(count, a, lanes_of(tape, ins->arg[1]), lanes_of(tape, ins->arg[2]), value,
                         magnitude);
        break;
    case WPK_TAPE_CAST:
        execute_cast(ins, count, a, value, magnitude);
        break;
    }
    for (int i = 0; ins->wraps && i < count; i++) {
        value[i] = wpk_reference_wrap(ins->dtype, value[i]);
    }
    if (ins->rounds) {
        wpk_lanes_round(ins->dtype, count, value);
    }
    if (ins->salt != 0) {
        move(tape, ins, count, value);
    }
}

static void execute_level(struct wpk_tape *tape, int level)
{
    for (int i = tape->level_first[level + 1]; i < tape->level_first[level + 2]; i++) {
        execute(tape, tape->order[i]);
    }
}

/* ---- the accumulator */

static void wrap_sums(struct wpk_tape *tape, int lanes)
{
    for (int i = 0; i < lanes; i++) {
        tape->sum[i] = wpk_reference_wrap(tape->stage->accumulator, tape->sum[i]);
    }
}

static void accumulate(struct wpk_tape *tape)
{
    double *magnitude = tape->with_magnitude ? tape->sum_magnitude : NULL;
    struct wpk_lanes a = lanes_of(tape, tape->factor[0]);
    if (tape->ordered) {
        wpk_order_add(tape, a.value, lanes_of(tape, tape->factor[1]).value);
        return;
    }
    if (tape->factor[1] >= 0) {
        if (!tape->sparse || a.value[0] != 0.0 || (magnitude != NULL && a.magnitude[0] != 0.0)) {
            wpk_lanes_multiply_add(tape->lanes, tape->sparse, a, lanes_of(tape, tape->factor[1]),
                                   tape->sum, magnitude);
        }
    } else if (tape->stage->reduction != WPK_REDUCE_NONE) {
        wpk_lanes_reduce(tape->stage->reduction, tape->stage->accumulator, tape->lanes, a,
                         tape->sum, magnitude);
    } else {
        memcpy(tape->sum, a.value, (size_t)tape->lanes * sizeof *tape->sum);
        if (magnitude != NULL) {
            memcpy(magnitude, a.magnitude, (size_t)tape->lanes * sizeof *magnitude);
        }
    }
    if (tape->wraps_often) {
        wrap_sums(tape, tape->lanes);
    }
}

/* Fold the lanes into lane 0. */
static void fold_lanes(struct wpk_tape *tape)
{
    enum wpk_reduction reduction = tape->stage->reduction;
    for (int i = 1; i < tape->lanes_most; i++) {
        struct wpk_lanes a = {&tape->sum[i], &tape->sum_magnitude[i]};
        wpk_lanes_reduce(reduction, tape->stage->accumulator, 1, a, tape->sum,
                         tape->with_magnitude ? tape->sum_magnitude : NULL);
        if (tape->wraps_often) {
            wrap_sums(tape, 1);
        }
    }
}

static void store(struct wpk_tape *tape)
{
    const struct wpk_stage *stage = tape->stage;
    enum wpk_dtype to = tape->program->tensors[stage->output].dtype;
    bool reduces = stage->reduction != WPK_REDUCE_NONE;
    int count = wpk_order_lane_is_reduced(tape) ? 1 : tape->lanes;
    int64_t offset = 0;
    for (int a = 0; a < stage->rank; a++) {
        offset += (tape->axis_value[a] - tape->out->low[a]) * tape->out->stride[a];
    }
    int64_t stride = tape->lane_axis >= 0 && !wpk_order_lane_is_reduced(tape)
                         ? tape->out->stride[tape->lane_axis]
                         : 0;
    if (tape->ordered) {
        wpk_order_end(tape);
    } else if (wpk_order_lane_is_reduced(tape)) {
        fold_lanes(tape);
    }
    for (int i = 0; i < count; i++) {
        double value = tape->sum[i];
        double magnitude = tape->with_magnitude ? tape->sum_magnitude[i] : 0.0;
        if (reduces) {
            value = wpk_reference_wrap(stage->accumulator, value);
            magnitude = wpk_reference_cast_magnitude(stage->accumulator, to, value, magnitude);
            value = wpk_reference_cast(stage->accumulator, to, value);
            value = tape->rounds && wpk_dtype_is_float(to) ? wpk_dtype_round(to, value) : value;
        }
        tape->out_value[offset + i * stride] = value;
        if (tape->with_magnitude) {
            tape->out_magnitude[offset + i * stride] = magnitude;
        }
    }
}

/* ---- the loop nest */

static void run_loops(struct wpk_tape *tape, int position);

/* From here on the output point is fixed, or the row of them. */
static void run_point(struct wpk_tape *tape)
{
    if (tape->ordered) {
        wpk_order_begin(tape);
    } else if (tape->stage->reduction != WPK_REDUCE_NONE) {
        enum wpk_reduction reduction = tape->stage->reduction;
        bool is_wide = tape->stage->accumulator == WPK_I64;
        double identity = 0.0;
        if (reduction == WPK_REDUCE_MAX) {
            identity = is_wide ? wpk_cell_of(INT64_MIN) : -(double)INFINITY;
        } else if (reduction == WPK_REDUCE_MIN) {
            identity = is_wide ? wpk_cell_of(INT64_MAX) : (double)INFINITY;
        } else if (reduction == WPK_REDUCE_PROD) {
            identity = is_wide ? wpk_cell_of(1) : 1.0;
        }
        /* Lanes that one output point, or one row of them, accumulates in. */
        int lanes = wpk_order_lane_is_reduced(tape) ? tape->lanes_most : tape->lanes;
        wpk_tape_fill(tape->sum, identity, lanes);
        if (tape->with_magnitude) {
            wpk_tape_fill(tape->sum_magnitude, reduction == WPK_REDUCE_PROD ? 1.0 : 0.0, lanes);
        }
    }
    run_loops(tape, tape->output_loops);
    store(tape);
}

static void run_loops(struct wpk_tape *tape, int position)
{
    if (position == tape->loop_count) {
        accumulate(tape);
        return;
    }
    int axis = tape->loop_axis[position];
    int64_t end = tape->axis_low[axis] + tape->axis_extent[axis];
    int64_t step = axis == tape->lane_axis ? tape->lanes_most : 1;
    for (int64_t v = tape->axis_low[axis]; v < end; v += step) {
        tape->axis_value[axis] = v;
        if (axis == tape->lane_axis) {
            tape->lanes = (int)(end - v < step ? end - v : step);
        }
        execute_level(tape, position);
        if (position + 1 == tape->output_loops) {
            run_point(tape);
        } else {
            run_loops(tape, position + 1);
        }
    }
}

wpk_err wpk_tape_run(struct wpk_tape *tape, const struct wpk_region *regions,
                     struct wpk_region *out, double *value, double *magnitude)
{
    const struct wpk_stage *stage = tape->stage;
    WPK_ASSERT(tape->with_magnitude == (magnitude != NULL));
    tape->out = out;
    tape->out_value = value;
    tape->out_magnitude = magnitude;
    for (int a = 0; a < stage->axis_count; a++) {
        tape->axis_low[a] = a < stage->rank ? out->low[a] : 0;
        tape->axis_extent[a] = a < stage->rank ? out->extent[a] : stage->axes[a].extent;
    }
    int64_t most = tape->lane_axis < 0 ? 1 : tape->axis_extent[tape->lane_axis];
    tape->lanes_most = (int)(most < WPK_TAPE_LANES ? most : WPK_TAPE_LANES);
    tape->lanes = tape->lanes_most;
    wpk_err err = WPK_OK;
    for (int i = 0; i < tape->load_count && err == WPK_OK; i++) {
        err = wpk_tape_bind(tape, &tape->loads[i], regions);
    }
    if (err == WPK_OK && most > 0) {
        execute_level(tape, -1);
        if (tape->output_loops == 0) {
            run_point(tape);
        } else {
            run_loops(tape, 0);
        }
    }
    for (int i = 0; i < tape->load_count; i++) {
        if (!tape->loads[i].region.fixed) {
            free(tape->loads[i].packed);
            tape->loads[i].packed = NULL;
        }
    }
    return err;
}
