/* SPDX-License-Identifier: Apache-2.0 */
#include "search/candidate_nest.h"

enum { TRANSPOSED_ROWS = 8 };

/* Position of a root axis in the order of the tile loops, outermost 0; -1: it has no loop. */
static int loop_position(const struct wpk_decisions *d, int root_axis)
{
    for (int i = 0; i < d->order_count; i++) {
        if (d->inner[i] == root_axis) {
            return i;
        }
    }
    return -1;
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

/* One dimension of a copy with the key it is sorted by: quotients by the position of their loop,
 * then reductions by theirs, then what lies within a tile, the lanes, the terms of an
 * instruction. */
struct copy_dim {
    int dim;
    int64_t block;
    int key;
};

struct copy_dims {
    struct copy_dim dim[2 * WPK_RANK_MAX];
    int count;
};

enum {
    KEY_UNROLLED = 50,
    KEY_OUTER_SUM = 60,
    KEY_REDUCTION = 100,
    KEY_TILE = 200,
    KEY_LANES = 299,
    KEY_TERMS
};

/* Dimensions stay sorted; of equal keys the one that was put first comes first. */
static void put_dim(struct copy_dims *dims, int dim, int64_t block, int key)
{
    int at = dims->count++;
    while (at > 0 && dims->dim[at - 1].key > key) {
        dims->dim[at] = dims->dim[at - 1];
        at--;
    }
    dims->dim[at] = (struct copy_dim){dim, block, key};
}

static void put_reduction(const struct wpk_decisions *d, int dim, int axis, struct copy_dims *dims)
{
    int position = reduction_position(d, axis);
    position = position < 0 ? KEY_UNROLLED : position; /* unrolled: inside all others */
    if (axis == d->dot) {
        put_dim(dims, dim, -d->terms, KEY_REDUCTION + 1 + position);
        put_dim(dims, dim, d->terms, KEY_TERMS);
        return;
    }
    if (axis == d->split_axis && d->split > 0 && d->red_count > 1) {
        put_dim(dims, dim, -d->split, KEY_REDUCTION);
        put_dim(dims, dim, d->split, KEY_REDUCTION + 1 + position);
    } else {
        put_dim(dims, dim, 0, KEY_REDUCTION + 1 + position);
    }
}

static void put_output(const struct wpk_stage *root, const struct wpk_decisions *d, bool halves,
                       int dim, int root_axis, struct copy_dims *dims)
{
    int64_t tile = root_axis < 0 ? 1 : d->tile[root_axis];
    int position = root_axis < 0 ? -1 : loop_position(d, root_axis);
    if (tile == 1 || position < 0) {
        put_dim(dims, dim, 0, 1 + position);
        return;
    }
    int inner = root_axis == d->vec ? KEY_LANES : KEY_TILE + position;
    if (halves && root_axis == d->vec && tile % (2 * d->lanes) == 0) {
        tile /= 2;
    }
    if (tile < root->axes[root_axis].extent) {
        put_dim(dims, dim, -tile, 1 + position);
        put_dim(dims, dim, tile, inner);
    } else {
        put_dim(dims, dim, 0, inner);
    }
}

static const struct wpk_node *load_of(const struct wpk_variant *variant, int g, int slot)
{
    const struct wpk_structure *s = variant->plan;
    return &variant->program.nodes[s->slots[g].pack_load[slot]];
}

static void collect_dims(const struct wpk_variant *variant, int g, const struct wpk_decisions *d,
                         int slot, const struct wpk_node *load, struct copy_dims *dims)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    int rank = program->stages[member->stage].rank;
    for (int dim = 0; dim < program->tensors[load->tensor].rank; dim++) {
        int axis = wpk_index_axis(program, load->index[dim]);
        if (axis >= rank) {
            put_reduction(d, dim, axis, dims);
        } else if (axis >= 0 && member->in_sum && member->root_axis[axis] < 0) {
            put_dim(dims, dim, 0, KEY_OUTER_SUM);
        } else if (axis >= 0) {
            put_output(&program->stages[group->root], d, d->halves[slot], dim,
                       member->root_axis[axis], dims);
        } else { /* always index 0: the copy does without */
            WPK_ASSERT(program->tensors[load->tensor].extent[dim] == 1);
        }
    }
}

/* True if the copy of the operand of a pack gene, number `slot` of the group, differs from its
 * tensor and can be made: then *out says how its dimensions lie. */
static bool find_copy(const struct wpk_variant *variant, int g, const struct wpk_decisions *d,
                      int slot, struct wpk_packing *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_node *load = load_of(variant, g, slot);
    const struct wpk_tensor *tensor = &variant->program.tensors[load->tensor];
    struct copy_dims dims = {.count = 0};
    bool moved = d->staged[slot], fills = false;
    collect_dims(variant, g, d, slot, load, &dims);
    *out = (struct wpk_packing){.tensor = load->tensor, .dim_count = dims.count};
    for (int i = 0; i < dims.count && dims.count <= WPK_RANK_MAX; i++) {
        const struct copy_dim *dim = &dims.dim[i];
        out->dim[i] = dim->dim;
        out->block[i] = dim->block;
        moved = moved || dim->dim != i || dim->block != 0;
        fills = fills || (dim->block < 0 && tensor->extent[dim->dim] % -dim->block != 0);
    }
    return dims.count <= WPK_RANK_MAX && moved && slots->pack_may[slot] != WPK_PACK_NEVER &&
           (!fills || slots->pack_may[slot] == WPK_PACK_ANY);
}

bool wpk_candidate_copy_is_cut(const struct wpk_variant *variant, int g,
                               const struct wpk_decisions *d, int root_axis)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    const struct wpk_group *group = &s->plan.group[g];
    for (int slot = 0; slot < s->slots[g].pack_count; slot++) {
        const struct wpk_member *member = &group->member[group->contraction];
        const struct wpk_node *load = load_of(variant, g, slot);
        int rank = program->stages[member->stage].rank;
        struct wpk_packing packing;
        if (!d->pack[slot] || !find_copy(variant, g, d, slot, &packing)) {
            continue;
        }
        for (int i = 0; i < packing.dim_count; i++) {
            int axis = wpk_index_axis(program, load->index[packing.dim[i]]);
            int64_t extent = program->tensors[load->tensor].extent[packing.dim[i]];
            if (axis >= 0 && axis < rank && member->root_axis[axis] == root_axis &&
                packing.block[i] < 0 && extent % -packing.block[i] != 0) {
                return true;
            }
        }
    }
    return false;
}

/* Elements of an operand's dimension that one k-block of a block reads. */
static int64_t panel_needs(const struct wpk_variant *variant, int g, const struct wpk_decisions *d,
                           const struct wpk_node *load, int dim)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &variant->program.stages[member->stage];
    int axis = wpk_index_axis(&variant->program, load->index[dim]);
    if (axis == d->split_axis) {
        return d->split;
    }
    if (axis >= stage->rank || stage->axes[axis].extent == 1) {
        return stage->axes[axis].extent;
    }
    int root_axis = member->root_axis[axis];
    return d->tile[root_axis] *
           wpk_block_tiles(&variant->program.stages[group->root], d, root_axis);
}

/* Fill `extent` with the elements of a copy's dimensions: of all that it has, or of what a panel
 * needs of it where the copy is staged.
 *   shape   extent [packing->dim_count] */
static void find_extents(const struct wpk_variant *variant, int g, const struct wpk_decisions *d,
                         int slot, const struct wpk_packing *packing, int64_t *extent)
{
    const struct wpk_tensor *tensor = &variant->program.tensors[packing->tensor];
    const struct wpk_node *load = load_of(variant, g, slot);
    for (int i = 0; i < packing->dim_count; i++) {
        int64_t block = packing->block[i];
        int64_t size = d->staged[slot] ? panel_needs(variant, g, d, load, packing->dim[i])
                                       : tensor->extent[packing->dim[i]];
        extent[i] = block > 0 ? block : block < 0 ? (size - block - 1) / -block : size;
    }
}

/* The dimension of the copy along which the tensor is contiguous, or the copy's last one if that is
 * cut into blocks: its inner part. */
static int find_contiguous(const struct wpk_program *program, const struct wpk_packing *packing)
{
    int rank = program->tensors[packing->tensor].rank, last = packing->dim_count - 1;
    for (int i = 0; i <= last; i++) {
        if (packing->dim[i] == rank - 1 && packing->block[i] >= 0) {
            return i;
        }
    }
    return last;
}

static int lanes_dividing(const struct wpk_space_options *options, int64_t extent)
{
    int lanes = options->target.machine.lanes_max;
    while (lanes > 1 && extent % lanes != 0) {
        lanes /= 2;
    }
    return lanes;
}

static void add_loop(struct wpk_nest *nest, struct wpk_nest_entry *copy, int axis,
                     enum wpk_loop_binding binding, int64_t step)
{
    wpk_nest_add_loop(nest, &copy->pure,
                      &(struct wpk_nest_loop){.axis = axis, .binding = binding, .step = step});
}

/* Add the loops of a copy that the main program makes. The lanes run along the tensor's contiguous
 * dimension; if that is not the copy's last one, the copy transposes, and a few rows of it are
 * written out, of which LLVM makes shuffles. */
static void add_loops(const struct wpk_space_options *options, struct wpk_nest *nest,
                      struct wpk_nest_entry *copy)
{
    int last = copy->packing.dim_count - 1;
    int source = find_contiguous(nest->program, &copy->packing);
    int lanes = lanes_dividing(options, copy->extent[source]);
    bool transposes = source != last && lanes > 1 && copy->extent[last] % TRANSPOSED_ROWS == 0;
    if (!transposes) {
        source = last;
        lanes = lanes_dividing(options, copy->extent[last]);
    }
    for (int i = 0; i <= last; i++) {
        bool parallel = i == 0 && lanes > 1 && options->threads > 1 && !copy->bounded;
        if (i != source && (i != last || !transposes)) {
            add_loop(nest, copy, i, parallel ? WPK_BIND_PARALLEL : WPK_BIND_SERIAL, 1);
        }
    }
    add_loop(nest, copy, source, WPK_BIND_SERIAL, lanes);
    if (transposes) {
        add_loop(nest, copy, last, WPK_BIND_SERIAL, TRANSPOSED_ROWS);
        add_loop(nest, copy, last, WPK_BIND_UNROLL, 1);
    }
    if (lanes > 1) {
        add_loop(nest, copy, source, WPK_BIND_LANES, 1);
    }
}

/* The place of a staged copy: in the loop over the panels of the sum that reads it. */
static struct wpk_nest_place panel_of(const struct wpk_variant *variant, int g, int root,
                                      const struct wpk_nest *nest)
{
    const struct wpk_structure *structure = variant->plan;
    const struct wpk_group *group = &structure->plan.group[g];
    int e = root;
    while (nest->entry[e].stage != group->member[group->contraction].stage) {
        e++;
        WPK_ASSERT(e < nest->entry_count);
    }
    return (struct wpk_nest_place){.entry = e, .update = true, .loop = 0};
}

/* The first group that copies a tensor decides the order for all who read it. */
static bool is_copied(const struct wpk_nest *nest, int tensor)
{
    for (int e = 0; e < nest->entry_count; e++) {
        if (nest->entry[e].kind == WPK_NEST_COPY && nest->entry[e].packing.tensor == tensor) {
            return true;
        }
    }
    return false;
}

void wpk_candidate_add_copies(const struct wpk_variant *variant,
                              const struct wpk_space_options *options, int g,
                              const struct wpk_decisions *d, int root, struct wpk_nest *nest)
{
    const struct wpk_structure *structure = variant->plan;
    for (int slot = 0; slot < structure->slots[g].pack_count; slot++) {
        struct wpk_packing packing;
        if (!d->pack[slot] || !find_copy(variant, g, d, slot, &packing) ||
            is_copied(nest, packing.tensor)) {
            continue;
        }
        int writer = wpk_program_writer(&variant->program, packing.tensor);
        struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_COPY, -1);
        entry->packing = packing;
        entry->bounded = d->staged[slot];
        if (d->staged[slot]) {
            entry->place = panel_of(variant, g, root, nest);
        }
        find_extents(variant, g, d, slot, &packing, entry->extent);
        if (variant->program.tensors[packing.tensor].role != WPK_ROLE_CONSTANT &&
            (writer < 0 || !structure->plan.prepare[writer])) {
            add_loops(options, nest, entry);
        }
    }
}
