/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of contractions, copied into the order in which the loops read them. */
#include "codegen/lowering.h"

#include "op/derive.h"

#include <stdlib.h>

static bool is_reduction_of(const struct wpk_stage *stage, int axis)
{
    return axis >= stage->rank;
}

/* Position of a root axis in the order of the tile loops, outermost 0. */
static int loop_position(const struct wpk_decisions *d, int root_axis)
{
    for (int i = 0; i < d->order_count; i++) {
        if (d->inner[i] == root_axis) {
            return i;
        }
    }
    return -1; /* no loop: extent 1 or whole */
}

static int reduction_position(const struct wpk_decisions *d, int axis)
{
    for (int i = 0; i < d->red_count; i++) {
        if (d->red[i] == axis) {
            return i;
        }
    }
    return -1;
}

/* One dimension of a packed operand with the key it is sorted by: quotients by the position of
 * their loop, then reductions by theirs, then what lies within a tile, the lanes last. */
struct packed_dim {
    int dim;
    int64_t block;
    int key;
};

enum { KEY_UNROLLED = 50, KEY_REDUCTION = 100, KEY_TILE = 200, KEY_LANES = 299 };

static int collect_dims(const struct wpk_variant *variant, const struct wpk_group *group,
                        const struct wpk_decisions *d, int load, struct packed_dim *dims)
{
    const struct wpk_program *program = &variant->program;
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    const struct wpk_node *node = &program->nodes[load];
    int count = 0;
    for (int dim = 0; dim < program->tensors[node->tensor].rank; dim++) {
        int axis = wpk_index_axis(program, node->index[dim]);
        if (axis < 0) {
            WPK_ASSERT(program->tensors[node->tensor].extent[dim] == 1);
            continue; /* always index 0: the packed tensor does without */
        }
        if (is_reduction_of(stage, axis)) {
            int position = reduction_position(d, axis);
            position = position < 0 ? KEY_UNROLLED : position; /* unrolled: inside all others */
            if (axis == d->split_axis && d->split > 0 && d->red_count > 1) {
                dims[count++] = (struct packed_dim){dim, -d->split, KEY_REDUCTION};
                dims[count++] = (struct packed_dim){dim, d->split, KEY_REDUCTION + 1 + position};
            } else {
                dims[count++] = (struct packed_dim){dim, 0, KEY_REDUCTION + 1 + position};
            }
            continue;
        }
        int root_axis = member->root_axis[axis];
        int64_t tile = root_axis < 0 ? 1 : d->tile[root_axis];
        int position = root_axis < 0 ? -1 : loop_position(d, root_axis);
        if (tile == 1 || position < 0) {
            dims[count++] = (struct packed_dim){dim, 0, 1 + position};
            continue;
        }
        int inner = root_axis == d->vec ? KEY_LANES : KEY_TILE + position;
        if (tile < program->stages[group->root].axes[root_axis].extent) {
            dims[count++] = (struct packed_dim){dim, -tile, 1 + position};
            dims[count++] = (struct packed_dim){dim, tile, inner};
        } else {
            dims[count++] = (struct packed_dim){dim, 0, inner};
        }
    }
    return count;
}

static int compare_dims(const void *a, const void *b)
{
    const struct packed_dim *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->dim - y->dim;
}

static wpk_err pack_operand(struct wpk_lowering *l, int g, int slot, struct wpk_packed_names *names)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_slots *slots = &l->structure->slots[g];
    const struct wpk_program *from = &l->variant->program;
    int load = slots->pack_load[slot];
    const char *tensor = from->tensors[from->nodes[load].tensor].name;
    struct packed_dim dims[2 * WPK_RANK_MAX];
    struct wpk_packing packing = {.tensor = wpk_program_find_tensor(&l->out->program, tensor)};
    int count = collect_dims(l->variant, group, &l->decisions[g], load, dims);
    if (packing.tensor < 0 || count > WPK_RANK_MAX) {
        return count > WPK_RANK_MAX ? WPK_OK : WPK_EINVAL; /* too many dimensions: left as it is */
    }
    qsort(dims, (size_t)count, sizeof(dims[0]), compare_dims);
    packing.dim_count = count;
    bool moved = false;
    for (int i = 0; i < count; i++) {
        packing.dim[i] = dims[i].dim;
        packing.block[i] = dims[i].block;
        moved = moved || dims[i].dim != i || dims[i].block != 0;
    }
    if (!moved) {
        return WPK_OK;
    }
    wpk_err err = wpk_derive_pack(&l->out->program, &packing, names->name[names->count]);
    names->count += err == WPK_OK;
    return err == WPK_EUNSUPPORTED ? WPK_OK : err; /* other loads of it forbid: left as it is */
}

wpk_err wpk_lowering_pack(struct wpk_lowering *l, struct wpk_packed_names *names)
{
    const struct wpk_plan *plan = &l->structure->plan;
    for (int g = 0; g < plan->group_count; g++) {
        for (int i = 0; i < l->structure->slots[g].pack_count; i++) {
            wpk_err err = l->decisions[g].pack[i] ? pack_operand(l, g, i, names) : WPK_OK;
            if (err != WPK_OK) {
                return err;
            }
        }
    }
    return WPK_OK;
}

/* A packed operand of the main program: copied whole beforehand, its last dimension in lanes. */
void wpk_lowering_copy_packed(struct wpk_lowering *l, const char *name)
{
    int id = wpk_schedule_find_stage(&l->out->main, name);
    if (id < 0) {
        return; /* a constant: packed by the prepare program */
    }
    const struct wpk_stage *stage = &l->out->main.stages[id];
    const struct wpk_axis *last = &stage->axes[stage->rank - 1];
    int lanes = l->space->options.device.vector_bytes / 4;
    char vectors[WPK_LOOP_NAME_MAX], within[WPK_LOOP_NAME_MAX];
    wpk_loop_name(vectors, last->name, 'U');
    wpk_loop_name(within, last->name, 'V');
    while (lanes > 1 && last->extent % lanes != 0) {
        lanes /= 2;
    }
    (void)wpk_lowering_emit_named(l, WPK_DIRECTIVE_COMPUTE_ROOT, name, false);
    if (lanes < 2) {
        return;
    }
    wpk_directive_split(wpk_lowering_emit_named(l, WPK_DIRECTIVE_SPLIT, name, false), last->name,
                        vectors, within, lanes, WPK_TAIL_EXACT);
    wpk_directive_operand(wpk_lowering_emit_named(l, WPK_DIRECTIVE_VECTORIZE, name, false), within);
    if (l->space->options.threads > 1 && stage->rank > 1) {
        wpk_directive_operand(wpk_lowering_emit_named(l, WPK_DIRECTIVE_PARALLEL, name, false),
                              stage->axes[0].name);
    }
}
