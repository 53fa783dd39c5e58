/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/reach.h"

#define SHARE_MAX 0.95 /* of the terms: a loop of a variable length costs a few percent */

static const struct wpk_node *strip_casts(const struct wpk_program *program, int id)
{
    while (program->nodes[id].kind == WPK_NODE_CAST) {
        id = program->nodes[id].arg[0];
    }
    return &program->nodes[id];
}

/* Set the bounds of what is not a border of zeros along a dimension of the load. False: there is
 * no border, or its values are not known. */
static bool find_bounds(const struct wpk_program *program, const struct wpk_node *load, int dim,
                        int64_t *low, int64_t *high)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int writer = wpk_program_writer(program, load->tensor);
    if (load->outside >= 0 && !wpk_load_is_zero_outside(program, load)) {
        return false;
    }
    if (writer < 0) {
        *low = 0;
        *high = tensor->extent[dim];
        return load->outside >= 0 || tensor->pad_before[dim] + tensor->pad_after[dim] > 0;
    }
    /* a copy with a border */
    const struct wpk_stage *stage = &program->stages[writer];
    const struct wpk_node *from = &program->nodes[stage->expr];
    if (stage->reduction != WPK_REDUCE_NONE || from->kind != WPK_NODE_LOAD ||
        !wpk_load_is_zero_outside(program, from)) {
        return false;
    }
    for (int d = 0; d < program->tensors[from->tensor].rank; d++) {
        struct wpk_affine affine;
        bool alone = wpk_index_affine(program, from->index[d], &affine);
        for (int a = 0; a < stage->axis_count && alone; a++) {
            alone = affine.coefficient[a] == (a == dim);
        }
        if (alone) {
            *low = -affine.constant;
            *high = program->tensors[from->tensor].extent[d] - affine.constant;
            return true;
        }
    }
    return false;
}

static bool is_inside(const struct wpk_nest *nest, const struct wpk_nest_entry *entry, int axis)
{
    for (int i = 0; i < entry->update.count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, &entry->update, i);
        if (loop->axis == axis && loop->inside) {
            return true;
        }
    }
    return false;
}

static bool is_border(const struct wpk_program *program, const struct wpk_nest *nest,
                      const struct wpk_nest_entry *entry, bool inside,
                      const struct wpk_nest_border *border)
{
    const struct wpk_stage *stage = &program->stages[entry->stage];
    struct wpk_affine affine;
    int64_t low, high;
    bool single = true, skips = false;
    if (!wpk_index_affine(program, border->index, &affine)) {
        return false;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        if (affine.coefficient[a] != 0 && a < stage->rank) {
            single = single && entry->bounded && entry->extent[a] == 1;
        } else if (affine.coefficient[a] != 0) {
            skips = skips || !inside || is_inside(nest, entry, a);
        }
    }
    wpk_index_range(program, stage, border->index, &low, &high);
    return single && skips && (low < border->low || high >= border->high);
}

int wpk_nest_borders(const struct wpk_program *program, const struct wpk_nest *nest, int number,
                     bool inside, struct wpk_nest_border *out)
{
    const struct wpk_nest_entry *entry = &nest->entry[number];
    const struct wpk_stage *stage = &program->stages[entry->stage];
    const struct wpk_node *product = strip_casts(program, stage->expr);
    int count = 0;
    if (stage->reduction != WPK_REDUCE_SUM || stage->strict || product->strict ||
        product->kind != WPK_NODE_BINARY || product->op != WPK_BINARY_MUL) {
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        const struct wpk_node *load = strip_casts(program, product->arg[i]);
        int rank = load->kind == WPK_NODE_LOAD ? program->tensors[load->tensor].rank : 0;
        for (int d = 0; d < rank && count < WPK_NEST_BORDERS_MAX; d++) {
            struct wpk_nest_border border = {.index = load->index[d]};
            if (find_bounds(program, load, d, &border.low, &border.high) &&
                is_border(program, nest, entry, inside, &border)) {
                out[count++] = border;
            }
        }
    }
    return count;
}

static double share_of(const struct wpk_nest *nest, int number,
                       const struct wpk_nest_border *border)
{
    const struct wpk_stage *stage = &nest->program->stages[nest->entry[number].stage];
    return wpk_index_share(nest->program, stage, border->index, border->low, border->high);
}

void wpk_nest_mark_inside(struct wpk_nest *nest)
{
    int number = nest->entry_count - 1;
    struct wpk_nest_entry *entry = &nest->entry[number];
    int rank = wpk_nest_stage(nest, entry)->rank, loops[WPK_AXES_MAX] = {0};
    struct wpk_nest_border border[WPK_NEST_BORDERS_MAX];
    int count = wpk_nest_borders(nest->program, nest, number, false, border);
    for (int i = 0; i < entry->update.count; i++) {
        loops[wpk_nest_at(nest, &entry->update, i)->axis]++;
    }
    for (int b = 0; b < count; b++) {
        struct wpk_affine affine;
        bool pays = wpk_index_affine(nest->program, border[b].index, &affine) &&
                    share_of(nest, number, &border[b]) <= SHARE_MAX;
        for (int i = 0; i < entry->update.count && pays; i++) {
            struct wpk_nest_loop *loop = &nest->loop[entry->update.first + i];
            loop->inside =
                loop->inside || (loop->axis >= rank && affine.coefficient[loop->axis] != 0 &&
                                 loop->binding == WPK_BIND_SERIAL && loops[loop->axis] == 1);
        }
    }
}

double wpk_nest_inside_share(const struct wpk_nest *nest, int number)
{
    struct wpk_nest_border border[WPK_NEST_BORDERS_MAX];
    double share = 1;
    bool inside = false;
    for (int i = 0; i < nest->entry[number].update.count; i++) {
        inside = inside || wpk_nest_at(nest, &nest->entry[number].update, i)->inside;
    }
    int count = inside ? wpk_nest_borders(nest->program, nest, number, true, border) : 0;
    for (int b = 0; b < count; b++) {
        share *= share_of(nest, number, &border[b]);
    }
    return share;
}
