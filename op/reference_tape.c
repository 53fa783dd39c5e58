/* SPDX-License-Identifier: Apache-2.0 */
/* Running a tape: the loop nest, the loads, the accumulator. */
#include "op/reference_tape.h"
#include "op/node.h"

#include <float.h>
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

/* ---- binding loads to memory */

/* Copy the region with dimension `last` innermost, so that lanes along it are contiguous. */
static wpk_err pack(struct wpk_tape_load *load, bool with_magnitude)
{
    struct wpk_region *region = &load->region;
    struct wpk_region packed = *region;
    int64_t elements = region->extent[load->pack_dim];
    packed.stride[load->pack_dim] = 1;
    for (int d = load->rank - 1; d >= 0; d--) {
        if (d != load->pack_dim) {
            packed.stride[d] = elements;
            elements *= region->extent[d];
        }
    }
    bool both = with_magnitude && region->magnitude != NULL;
    if (elements == 0) {
        return WPK_OK;
    }
    load->packed = malloc((size_t)elements * (both ? 2 : 1) * sizeof *load->packed);
    if (load->packed == NULL) {
        return WPK_ENOMEM;
    }
    double *magnitude = both ? load->packed + elements : NULL;
    int64_t index[WPK_RANK_MAX] = {0};
    for (int64_t n = 0; n < elements; n++) {
        int64_t from = 0;
        int64_t to = 0;
        for (int d = 0; d < load->rank; d++) {
            from += index[d] * region->stride[d];
            to += index[d] * packed.stride[d];
        }
        load->packed[to] = region->value[from];
        if (both) {
            magnitude[to] = region->magnitude[from];
        }
        for (int d = load->rank - 1; d >= 0 && ++index[d] == region->extent[d]; d--) {
            index[d] = 0;
        }
    }
    packed.value = load->packed;
    packed.magnitude = magnitude;
    *region = packed;
    return WPK_OK;
}

/* Flatten the affine dimensions into one sum over axes. */
static wpk_err bind_load(struct wpk_tape *tape, struct wpk_tape_load *load,
                         const struct wpk_region *regions)
{
    load->region = regions[load->tensor];
    if (!tape->with_magnitude) {
        load->region.magnitude = NULL;
    }
    wpk_err err = load->pack_dim >= 0 ? pack(load, tape->with_magnitude) : WPK_OK;
    int64_t coefficient[WPK_AXES_MAX] = {0};
    load->flat_constant = 0;
    load->flat_count = 0;
    for (int d = 0; d < load->rank; d++) {
        const struct wpk_tape_dim *dim = &load->dim[d];
        int64_t stride = load->region.stride[d];
        load->flat_constant += (dim->constant - load->region.low[d]) * stride;
        for (int t = 0; t < dim->term_count; t++) {
            coefficient[dim->term[t].axis] += dim->term[t].coefficient * stride;
        }
    }
    for (int a = 0; a < tape->stage->axis_count; a++) {
        if (coefficient[a] != 0) {
            load->flat[load->flat_count++] = (struct wpk_tape_term){a, coefficient[a]};
        }
    }
    load->lane_stride = tape->lane_axis < 0 ? 0 : coefficient[tape->lane_axis];
    return err;
}

/* ---- loads */

static int64_t sum_terms(const struct wpk_tape *tape, const struct wpk_tape_term *term, int count)
{
    int64_t sum = 0;
    for (int t = 0; t < count; t++) {
        sum += term[t].coefficient * tape->axis_value[term[t].axis];
    }
    return sum;
}

/* What is read at an index outside [0, extent) in some dimension: inputs have their zeros there
 * as far as they are padded, everything else is `outside`. */
static double read_outside(const struct wpk_tape *tape, const struct wpk_tape_load *load,
                           const int64_t *index)
{
    const struct wpk_tensor *tensor = &tape->program->tensors[load->tensor];
    for (int d = 0; d < load->rank; d++) {
        if (index[d] < -tensor->pad_before[d] ||
            index[d] >= tensor->extent[d] + tensor->pad_after[d]) {
            return load->outside;
        }
    }
    return 0.0;
}

/* All indices of the load at one lane. */
static void indices_at(const struct wpk_tape *tape, const struct wpk_tape_load *load, int lane,
                       int64_t *index)
{
    for (int d = 0; d < load->rank; d++) {
        const struct wpk_tape_dim *dim = &load->dim[d];
        if (dim->slot < 0) {
            index[d] = dim->constant + sum_terms(tape, dim->term, dim->term_count) +
                       dim->lane_coefficient * lane;
        } else {
            bool lanes = tape->instructions[dim->slot].lanes;
            index[d] = (int64_t)tape->slots[dim->slot].value[lanes ? lane : 0];
        }
    }
}

/* One element, by its indices: the general way. */
static void load_element(const struct wpk_tape *tape, const struct wpk_tape_load *load, int lane,
                         double *value, double *magnitude)
{
    const struct wpk_tensor *tensor = &tape->program->tensors[load->tensor];
    int64_t index[WPK_RANK_MAX];
    int64_t offset = 0;
    bool inside = true;
    indices_at(tape, load, lane, index);
    for (int d = 0; d < load->rank; d++) {
        inside = inside && index[d] >= 0 && index[d] < tensor->extent[d];
        offset += (index[d] - load->region.low[d]) * load->region.stride[d];
    }
    *value = inside ? load->region.value[offset] : read_outside(tape, load, index);
    *magnitude = inside && load->region.magnitude != NULL ? load->region.magnitude[offset]
                                                          : wpk_reference_magnitude(*value);
}

/* Narrow the lanes [first, last) to those at which every checked dimension is inside, and add the
 * slot dimensions, which are uniform here, to the offset. */
static void clip_lanes(const struct wpk_tape *tape, const struct wpk_tape_load *load, int *first,
                       int *last, int64_t *offset)
{
    const struct wpk_tensor *tensor = &tape->program->tensors[load->tensor];
    for (int d = 0; d < load->rank; d++) {
        const struct wpk_tape_dim *dim = &load->dim[d];
        int64_t base = 0;
        if (dim->slot >= 0) {
            base = (int64_t)tape->slots[dim->slot].value[0];
            *offset += base * load->region.stride[d];
        } else if (dim->checked) {
            base = dim->constant + sum_terms(tape, dim->term, dim->term_count);
        }
        if (!dim->checked) {
            continue;
        }
        int64_t step = dim->lane_coefficient;
        while (*first < *last &&
               (base + step * *first < 0 || base + step * *first >= tensor->extent[d])) {
            ++*first;
        }
        while (*first < *last &&
               (base + step * (*last - 1) < 0 || base + step * (*last - 1) >= tensor->extent[d])) {
            --*last;
        }
    }
}

static void load_uniform(const struct wpk_tape *tape, const struct wpk_tape_load *load,
                         struct wpk_tape_slot *slot)
{
    int first = 0;
    int last = 1;
    int64_t offset = load->flat_constant + sum_terms(tape, load->flat, load->flat_count);
    clip_lanes(tape, load, &first, &last, &offset);
    if (first == last) {
        load_element(tape, load, 0, slot->value_own, slot->magnitude_own);
        return;
    }
    double value = load->region.value[offset];
    slot->value_own[0] = value;
    slot->magnitude_own[0] = load->region.magnitude != NULL ? load->region.magnitude[offset]
                                                            : wpk_reference_magnitude(value);
}

static void copy_strided(const double *restrict from, int64_t stride, int count,
                         double *restrict to)
{
    for (int i = 0; i < count; i++) {
        to[i] = from[i * stride];
    }
}

static void absolute(const double *restrict from, int count, double *restrict to)
{
    for (int i = 0; i < count; i++) {
        double size = fabs(from[i]);
        to[i] = size <= DBL_MAX ? size : 0.0; /* as wpk_reference_magnitude, without a call */
    }
}

static void load_lanes(const struct wpk_tape *tape, const struct wpk_tape_instruction *ins,
                       struct wpk_tape_slot *slot)
{
    const struct wpk_tape_load *load = &tape->loads[ins->load];
    int first = load->gathers ? tape->lanes : 0;
    int last = tape->lanes;
    int64_t offset = load->flat_constant + sum_terms(tape, load->flat, load->flat_count);
    if (!load->gathers) {
        clip_lanes(tape, load, &first, &last, &offset);
    }
    const double *value = NULL;
    const double *magnitude = NULL;
    if (first < last) {
        value = load->region.value + offset;
        magnitude = load->region.magnitude == NULL ? NULL : load->region.magnitude + offset;
    }
    bool whole = first == 0 && last == tape->lanes && first < last;
    if (whole && load->lane_stride == 1) { /* read where it lies */
        slot->value = value;
        slot->magnitude = magnitude;
        if (magnitude == NULL && tape->with_magnitude && !ins->bare) {
            absolute(value, last, slot->magnitude_own);
            slot->magnitude = slot->magnitude_own;
        }
        return;
    }
    slot->value = slot->value_own;
    slot->magnitude = slot->magnitude_own;
    if (first < last) {
        int64_t stride = load->lane_stride;
        copy_strided(value + first * stride, stride, last - first, slot->value_own + first);
        if (magnitude != NULL) {
            copy_strided(magnitude + first * stride, stride, last - first,
                         slot->magnitude_own + first);
        } else if (tape->with_magnitude) {
            absolute(slot->value_own + first, last - first, slot->magnitude_own + first);
        }
    }
    for (int i = 0; i < tape->lanes; i++) {
        if (i == first && first < last) {
            i = last - 1;
            continue;
        }
        load_element(tape, load, i, &slot->value_own[i], &slot->magnitude_own[i]);
    }
}

/* ---- instructions */

static struct wpk_lanes lanes_of(const struct wpk_tape *tape, int slot)
{
    if (slot < 0) {
        return (struct wpk_lanes){NULL, NULL};
    }
    return (struct wpk_lanes){tape->slots[slot].value, tape->slots[slot].magnitude};
}

static void fill(double *to, double value, int count)
{
    for (int i = 0; i < count; i++) {
        to[i] = value;
    }
}

static void execute_simple(const struct wpk_tape *tape, const struct wpk_tape_instruction *ins,
                           struct wpk_tape_slot *slot)
{
    if (ins->kind == WPK_TAPE_BROADCAST) {
        struct wpk_lanes from = lanes_of(tape, ins->arg[0]);
        /* All of them: it may have been hoisted out of the loop that sets how many are in use. */
        fill(slot->value_own, from.value[0], tape->lanes_most);
        if (tape->with_magnitude) {
            fill(slot->magnitude_own, from.magnitude[0], tape->lanes_most);
        }
        return;
    }
    double first = ins->literal;
    double step = 0.0;
    int count = 1;
    if (ins->kind == WPK_TAPE_AXIS) {
        first = (double)tape->axis_value[ins->axis];
        step = ins->lanes ? 1.0 : 0.0;
        count = ins->lanes ? tape->lanes : 1;
    }
    for (int i = 0; i < count; i++) {
        slot->value_own[i] = first + step * i;
        slot->magnitude_own[i] = wpk_reference_magnitude(slot->value_own[i]);
    }
}

static void execute_cast(const struct wpk_tape_instruction *ins, int count, struct wpk_lanes a,
                         double *value, double *magnitude)
{
    for (int i = 0; i < count; i++) {
        value[i] = wpk_reference_cast(ins->from, ins->dtype, a.value[i]);
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
    if (ins->rounds && ins->op == WPK_BINARY_MOD) {
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
        if (ins->lanes) {
            load_lanes(tape, ins, slot);
        } else {
            load_uniform(tape, &tape->loads[ins->load], slot);
        }
        return;
    case WPK_TAPE_UNARY:
        wpk_lanes_unary((enum wpk_unary)ins->op, count, a, value, magnitude);
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

static bool lane_is_reduced(const struct wpk_tape *tape)
{
    return tape->lane_axis >= tape->stage->rank;
}

/* Lanes that one output point, or one row of them, accumulates in. */
static int accumulator_lanes(const struct wpk_tape *tape)
{
    return lane_is_reduced(tape) ? tape->lanes_most : tape->lanes;
}

static void begin(struct wpk_tape *tape)
{
    double identity = 0.0;
    double magnitude = 0.0;
    switch (tape->stage->reduction) {
    case WPK_REDUCE_MAX:
        identity = -(double)INFINITY;
        break;
    case WPK_REDUCE_MIN:
        identity = (double)INFINITY;
        break;
    case WPK_REDUCE_PROD:
        identity = 1.0;
        magnitude = 1.0;
        break;
    default:
        break;
    }
    int lanes = accumulator_lanes(tape);
    fill(tape->sum, identity, lanes);
    if (tape->with_magnitude) {
        fill(tape->sum_magnitude, magnitude, lanes);
    }
}

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
        wpk_lanes_reduce(tape->stage->reduction, tape->lanes, a, tape->sum, magnitude);
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
        wpk_lanes_reduce(reduction, 1, a, tape->sum,
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
    int count = lane_is_reduced(tape) ? 1 : tape->lanes;
    int64_t offset = 0;
    for (int a = 0; a < stage->rank; a++) {
        offset += (tape->axis_value[a] - tape->out->low[a]) * tape->out->stride[a];
    }
    int64_t stride =
        tape->lane_axis >= 0 && !lane_is_reduced(tape) ? tape->out->stride[tape->lane_axis] : 0;
    if (tape->ordered) {
        wpk_order_end(tape);
    } else if (lane_is_reduced(tape)) {
        fold_lanes(tape);
    }
    for (int i = 0; i < count; i++) {
        double value = tape->sum[i];
        double magnitude = tape->with_magnitude ? tape->sum_magnitude[i] : 0.0;
        if (reduces) {
            value = wpk_reference_wrap(stage->accumulator, value);
            magnitude = wpk_reference_cast_magnitude(stage->accumulator, to, value, magnitude);
            value = wpk_reference_cast(stage->accumulator, to, value);
            value = tape->rounds ? wpk_dtype_round(to, value) : value;
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
        begin(tape);
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
        err = bind_load(tape, &tape->loads[i], regions);
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
        free(tape->loads[i].packed);
        tape->loads[i].packed = NULL;
    }
    return err;
}
