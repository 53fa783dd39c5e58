/* SPDX-License-Identifier: Apache-2.0 */
/* The loads of a tape: binding each to its tensor in memory, and reading rows of it. */
#include "ir/reference/tape.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

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
wpk_err wpk_tape_bind(struct wpk_tape *tape, struct wpk_tape_load *load,
                      const struct wpk_region *regions)
{
    wpk_err err = WPK_OK;
    load->region = regions[load->tensor];
    if (!tape->with_magnitude) {
        load->region.magnitude = NULL;
    }
    if (load->packed != NULL) {
        load->region = load->packed_region;
    } else if (load->pack_dim >= 0) {
        err = pack(load, tape->with_magnitude);
        load->packed_region = load->region;
    }
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

/* The value at an index outside [0, extent) in some dimension: 0 in an input's padding, `outside`
 * beyond it. */
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
            index[d] = wpk_cell_integer(tape->slots[dim->slot].value[lanes ? lane : 0]);
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
        offset += inside ? (index[d] - load->region.low[d]) * load->region.stride[d] : 0;
    }
    *value = inside ? load->region.value[offset] : read_outside(tape, load, index);
    *magnitude = inside && load->region.magnitude != NULL
                     ? load->region.magnitude[offset]
                     : wpk_reference_magnitude(load->dtype, *value);
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
            base = wpk_cell_integer(tape->slots[dim->slot].value[0]);
            bool is_inside = base >= 0 && base < tensor->extent[d];
            *offset += is_inside ? base * load->region.stride[d] : 0;
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
    slot->magnitude_own[0] = load->region.magnitude != NULL
                                 ? load->region.magnitude[offset]
                                 : wpk_reference_magnitude(load->dtype, value);
}

static void copy_strided(const double *restrict from, int64_t stride, int count,
                         double *restrict to)
{
    for (int i = 0; i < count; i++) {
        to[i] = from[i * stride];
    }
}

static void absolute(enum wpk_dtype dtype, const double *restrict from, int count,
                     double *restrict to)
{
    for (int i = 0; dtype == WPK_I64 && i < count; i++) {
        to[i] = wpk_reference_magnitude(dtype, from[i]);
    }
    for (int i = 0; dtype != WPK_I64 && i < count; i++) {
        double size = fabs(from[i]);
        to[i] = size <= DBL_MAX ? size : 0.0; /* as wpk_reference_magnitude, without a call */
    }
}

/* No lane is inside, and what they read does not depend on the lane. */
static bool fill_outside(const struct wpk_tape *tape, const struct wpk_tape_load *load,
                         struct wpk_tape_slot *slot)
{
    for (int d = 0; d < load->rank; d++) {
        if (load->dim[d].checked && load->dim[d].lane_coefficient != 0) {
            return false;
        }
    }
    load_element(tape, load, 0, slot->value_own, slot->magnitude_own);
    wpk_tape_fill(slot->value_own, slot->value_own[0], tape->lanes);
    wpk_tape_fill(slot->magnitude_own, slot->magnitude_own[0], tape->lanes);
    return true;
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
            absolute(load->dtype, value, last, slot->magnitude_own);
            slot->magnitude = slot->magnitude_own;
        }
        return;
    }
    slot->value = slot->value_own;
    slot->magnitude = slot->magnitude_own;
    if (!load->gathers && first == last && fill_outside(tape, load, slot)) {
        return;
    }
    if (first < last) {
        int64_t stride = load->lane_stride;
        copy_strided(value + first * stride, stride, last - first, slot->value_own + first);
        if (magnitude != NULL) {
            copy_strided(magnitude + first * stride, stride, last - first,
                         slot->magnitude_own + first);
        } else if (tape->with_magnitude) {
            absolute(load->dtype, slot->value_own + first, last - first,
                     slot->magnitude_own + first);
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

void wpk_tape_load(const struct wpk_tape *tape, const struct wpk_tape_instruction *ins,
                   struct wpk_tape_slot *slot)
{
    if (ins->lanes) {
        load_lanes(tape, ins, slot);
    } else {
        load_uniform(tape, &tape->loads[ins->load], slot);
    }
}
