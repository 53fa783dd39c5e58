/* SPDX-License-Identifier: Apache-2.0 */
/* The box of elements of a stage that its readers need in one iteration of the loop around it: the
 * least index as a form of the loops around, and a size that is the same in all iterations.
 *
 * Every reader's indices are intervals over its own box. Where two loads begin at a distance that
 * is no number, all of the dimension is taken. A box that may reach past the end of an axis moves
 * inwards, from multiples, too, unless what it computes there reads nothing outside of its
 * tensors. */
#include "ir/data_index.h"
#include "target/c/kernel.h"

#include <stdlib.h>

/* The values [low, low + size) of an index. */
struct interval {
    struct wpk_form low;
    int64_t size;
};

/* ---- intervals of indices */

static struct interval scale(const struct interval *a, int64_t factor)
{
    struct interval out = {.size = factor == 0 ? 1 : (a->size - 1) * llabs(factor) + 1};
    out.low = wpk_form_scale(&a->low, factor, factor < 0 ? factor * (a->size - 1) : 0);
    return out;
}

static struct interval add(struct wpk_c_kernel *k, const struct interval *a,
                           const struct interval *b)
{
    return (struct interval){wpk_form_add(&k->forms, &a->low, &b->low, 1), a->size + b->size - 1};
}

static struct interval divide(struct wpk_c_kernel *k, const struct interval *a, int64_t divisor)
{
    int64_t rest = 0;
    bool known = wpk_form_split(&k->forms, &a->low, divisor, &rest);
    rest = known ? rest : divisor - 1; /* the worst */
    return (struct interval){wpk_form_divide(&k->forms, &a->low, divisor),
                             (rest + a->size - 1) / divisor + 1};
}

static struct interval modulo(struct wpk_c_kernel *k, const struct interval *a, int64_t divisor)
{
    int64_t rest = 0;
    bool known = wpk_form_split(&k->forms, &a->low, divisor, &rest);
    if (a->size == 1 || (known && rest + a->size <= divisor)) {
        return (struct interval){wpk_form_modulo(&k->forms, &a->low, divisor), a->size};
    }
    return (struct interval){wpk_form_number(0), divisor};
}

static struct interval interval_of(struct wpk_c_kernel *k, const struct wpk_program *program,
                                   const struct interval *axis, int id)
{
    const struct wpk_node *node = &program->nodes[id];
    if (node->kind == WPK_NODE_AXIS) {
        return axis[node->axis];
    }
    if (node->kind == WPK_NODE_LITERAL) {
        return (struct interval){wpk_form_number(node->integer), 1};
    }
    if (node->kind != WPK_NODE_BINARY) { /* data */
        return (struct interval){wpk_form_number(0), (int64_t)1 << 40};
    }
    struct interval a = interval_of(k, program, axis, node->arg[0]);
    struct interval b = interval_of(k, program, axis, node->arg[1]);
    int64_t second = b.low.constant;
    switch (node->op) {
    case WPK_BINARY_ADD:
        return add(k, &a, &b);
    case WPK_BINARY_SUB:
        b = scale(&b, -1);
        return add(k, &a, &b);
    case WPK_BINARY_MUL:
        return program->nodes[node->arg[1]].kind == WPK_NODE_LITERAL ? scale(&a, second)
                                                                     : scale(&b, a.low.constant);
    case WPK_BINARY_DIV:
        return divide(k, &a, second);
    default:
        return modulo(k, &a, second);
    }
}

/* ---- boxes */

static void extend(struct wpk_c_kernel *k, struct wpk_c_box *box, const struct wpk_tensor *t,
                   const struct interval *index)
{
    for (int d = 0; d < t->rank; d++) {
        struct wpk_form apart = wpk_form_add(&k->forms, &index[d].low, &box->low[d], -1);
        if (!box->present) {
            box->low[d] = index[d].low;
            box->size[d] = index[d].size;
        } else if (wpk_form_is_number(&apart)) {
            int64_t before = apart.constant < 0 ? -apart.constant : 0;
            int64_t end = apart.constant + index[d].size;
            box->size[d] = before + (end > box->size[d] ? end : box->size[d]);
            box->low[d].constant -= before;
        } else {
            box->low[d] = wpk_form_number(0);
            box->size[d] = t->extent[d];
        }
    }
    box->present = true;
}

/* Add what a stage reads, whose axes have these values; inlined stages read in its place. */
static void extend_by_loads(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                            const struct interval *axis, const struct wpk_nest_place *place,
                            struct wpk_c_box *box)
{
    const struct wpk_program *program = k->nest->program;
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        const struct wpk_tensor *t = &program->tensors[load.node->tensor];
        int writer = wpk_program_writer(program, load.node->tensor);
        struct interval index[WPK_AXES_MAX];
        if (writer < 0) {
            continue;
        }
        for (int d = 0; d < t->rank; d++) {
            index[d] = wpk_index_is_data(program, load.node->index[d])
                           ? (struct interval){wpk_form_number(0), t->extent[d]}
                           : interval_of(k, program, axis, load.node->index[d]);
        }
        const struct wpk_nest_entry *entry = &k->nest->entry[k->entry_of[writer]];
        if (entry->inlined) {
            const struct wpk_stage *inner = &program->stages[writer];
            for (int a = inner->rank; a < inner->axis_count; a++) {
                index[a] = (struct interval){wpk_form_number(0), inner->axes[a].extent};
            }
            extend_by_loads(k, inner, index, place, box);
        } else if (wpk_nest_is_inside(k->nest, entry, place)) {
            extend(k, &box[k->entry_of[writer]], t, index);
        }
    }
}

/* True if the stage may be computed in the whole box, even past the ends of its axes. The terms of
 * a sum that is expanded have loads of their own, of which only some are limited to their
 * tensor. */
static bool may_pass(struct wpk_c_kernel *k, const struct wpk_stage *of,
                     const struct interval *axis)
{
    const struct wpk_program *program = k->program;
    const struct wpk_stage *stage = &program->stages[of - k->nest->program->stages];
    struct wpk_loads load = wpk_loads_of(program, stage);
    while (wpk_loads_next(&load)) {
        const struct wpk_tensor *t = &program->tensors[load.node->tensor];
        for (int d = 0; d < t->rank && load.node->outside < 0; d++) {
            struct interval index = interval_of(k, program, axis, load.node->index[d]);
            int64_t low = 0, high = 0;
            wpk_form_range(&k->forms, &index.low, &low, &high);
            if (low < -t->pad_before[d] || high + index.size > t->extent[d] + t->pad_after[d]) {
                return false;
            }
        }
    }
    return load.count < WPK_LOADS_MAX;
}

static void axes_of(const struct wpk_stage *stage, const struct wpk_c_box *box, bool host,
                    struct interval *axis)
{
    for (int a = 0; a < stage->axis_count; a++) {
        bool whole = a >= stage->rank && !host;
        axis[a].low = whole ? wpk_form_number(0) : box->low[a];
        axis[a].size = whole ? stage->axes[a].extent : box->size[a];
    }
}

/* Let the box begin and end at multiples, as the nest says. */
static void align(struct wpk_c_kernel *k, const struct wpk_nest_entry *entry, int rank,
                  struct wpk_c_box *box)
{
    for (int a = 0; a < rank; a++) {
        int64_t by = entry->align[a], rest = 0;
        if (by <= 1) {
            continue;
        }
        if (wpk_form_split(&k->forms, &box->low[a], by, &rest)) {
            box->low[a].constant -= rest;
        } else {
            struct wpk_form begin = wpk_form_divide(&k->forms, &box->low[a], by);
            box->low[a] = wpk_form_scale(&begin, by, 0);
            rest = by - 1; /* the worst */
        }
        box->size[a] = (rest + box->size[a] + by - 1) / by * by;
    }
}

static void settle(struct wpk_c_kernel *k, const struct wpk_stage *stage, struct wpk_c_box *box)
{
    struct interval axis[WPK_AXES_MAX];
    bool inside = true;
    for (int a = 0; a < stage->rank; a++) {
        int64_t low = 0, high = 0, extent = stage->axes[a].extent;
        wpk_form_range(&k->forms, &box->low[a], &low, &high);
        inside = inside && low >= 0 && high + box->size[a] <= extent;
    }
    axes_of(stage, box, false, axis);
    if (inside || may_pass(k, stage, axis)) {
        return;
    }
    for (int a = 0; a < stage->rank; a++) {
        int64_t extent = stage->axes[a].extent;
        box->size[a] = box->size[a] < extent ? box->size[a] : extent;
        box->low[a] = wpk_form_limit(&k->forms, &box->low[a], 0, extent - box->size[a]);
    }
}

void wpk_c_find_boxes(struct wpk_c_kernel *k, const struct wpk_nest_place *place,
                      struct wpk_c_box *box)
{
    const struct wpk_nest *nest = k->nest;
    for (int e = place->entry; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        const struct wpk_stage *stage = &nest->program->stages[entry->stage];
        struct interval axis[WPK_AXES_MAX];
        if (entry->inlined || !box[e].present) {
            continue;
        }
        if (e != place->entry) {
            align(k, entry, stage->rank, &box[e]);
            settle(k, stage, &box[e]);
        }
        axes_of(stage, &box[e], e == place->entry, axis);
        extend_by_loads(k, stage, axis, place, box);
    }
}

const struct wpk_nest_entry *wpk_c_entry_of(const struct wpk_c_kernel *k, int tensor)
{
    return &k->nest->entry[k->entry_of[wpk_program_writer(k->program, tensor)]];
}
