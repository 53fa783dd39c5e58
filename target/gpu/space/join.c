/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/transforms.h"

#include "target/gpu/space/moves.h"

#define FIT_LEAST 8 /* elements of a block along i and j, if there are as many */
#define FIT_MOST 128

/* The elements of the tensor that a box of the stage needs, from index 0 on, through what the stage
 * reads; false: it reads none, or from another index on.
 *   shape   extent [axis_count], out [rank of the tensor] */
static bool find_needed(const struct wpk_program *program, int s, const int64_t *extent, int tensor,
                        int64_t *out)
{
    const struct wpk_stage *stage = &program->stages[s];
    const int64_t origin[WPK_AXES_MAX] = {0};
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        int writer = wpk_program_writer(program, load.node->tensor);
        int64_t box[WPK_AXES_MAX] = {0};
        bool begins = writer >= 0;
        for (int d = 0; d < program->tensors[load.node->tensor].rank && begins; d++) {
            int64_t low = 0, high = 0;
            wpk_index_range_in(program, load.node->index[d], origin, extent, &low, &high);
            begins = low == 0;
            box[d] = high + 1;
        }
        for (int a = writer < 0 ? 0 : program->stages[writer].rank;
             begins && a < program->stages[writer].axis_count; a++) {
            box[a] = program->stages[writer].axes[a].extent;
        }
        if (begins && load.node->tensor == tensor) {
            for (int d = 0; d < program->tensors[tensor].rank; d++) {
                out[d] = box[d];
            }
            return true;
        }
        if (begins && find_needed(program, writer, box, tensor, out)) {
            return true;
        }
    }
    return false;
}

/* ---- behind the products */

/* True if the box of the transforms' root needs no more of the group's root than its blocks have.
 *   shape   needed [WPK_AXES_MAX]: what it needs */
static bool is_within(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                      const struct wpk_cuda_group *group, const int64_t *block,
                      const int64_t *extent, int64_t *needed)
{
    const struct wpk_stage *root = &program->stages[group->root];
    bool within =
        find_needed(program, all->group[group->behind].root, extent, root->output, needed);
    for (int a = 0; a < root->rank && within; a++) {
        int64_t most = a == group->i ? block[0] : a == group->j ? block[1] : 1;
        within = a == group->whole || needed[a] <= most;
    }
    return within;
}

/* An axis whose last tile is not whole stays whole: a block that moved inwards would have no whole
 * tiles. */
static bool has_whole_tiles(const struct wpk_stage *last, const struct wpk_cuda_group *behind,
                            int axis)
{
    return last->axes[axis].extent % behind->tile[axis] == 0;
}

bool wpk_cuda_fit(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                  const struct wpk_cuda_group *group, const int64_t *block, int64_t *extent)
{
    const struct wpk_cuda_group *behind = &all->group[group->behind];
    const struct wpk_stage *last = &program->stages[behind->root];
    int64_t needed[WPK_AXES_MAX] = {0};
    for (int a = 0; a < last->rank; a++) {
        extent[a] = has_whole_tiles(last, behind, a) ? behind->tile[a] : last->axes[a].extent;
    }
    bool fits = is_within(program, all, group, block, extent, needed);
    for (int a = last->rank - 1; a >= 0 && fits; a--) {
        int64_t least = 1, most = last->axes[a].extent / behind->tile[a];
        if (!has_whole_tiles(last, behind, a)) {
            continue;
        }
        while (least < most) { /* what is needed grows with the tiles */
            int64_t tiles = (least + most + 1) / 2;
            extent[a] = tiles * behind->tile[a];
            bool more = is_within(program, all, group, block, extent, needed);
            least = more ? tiles : least;
            most = more ? most : tiles - 1;
        }
        extent[a] = least * behind->tile[a];
    }
    return fits && is_within(program, all, group, block, extent, needed) &&
           (group->i < 0 || needed[group->i] == block[0]) &&
           (group->j < 0 || needed[group->j] == block[1]);
}

/* The group of transforms that alone reads the tensor, in the first one of its chain; -1: none. */
static int find_behind(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                       int tensor)
{
    struct wpk_cuda_reading reading = wpk_cuda_read(program, tensor);
    int g = reading.loads == 1 ? all->group_of[reading.stage] : -1;
    if (program->tensors[tensor].role != WPK_ROLE_INTERMEDIATE || reading.loads != 1 ||
        program->nodes[reading.load].outside >= 0) {
        return -1;
    }
    if (g == WPK_CUDA_INLINED) {
        return find_behind(program, all, program->stages[reading.stage].output);
    }
    bool first = g >= 0 && all->group[g].kind == WPK_CUDA_TRANSFORMS &&
                 all->group[g].root != reading.stage && all->group[g].operand_count == 0;
    return first ? g : -1;
}

/* Elements along i or j that a row of tiles needs: all of the last axis that has several. */
static int64_t find_row(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                        const struct wpk_cuda_group *group, int along_j)
{
    const struct wpk_cuda_group *behind = &all->group[group->behind];
    const struct wpk_stage *last = &program->stages[behind->root];
    int64_t row = 1;
    for (int a = last->rank - 1; a >= 0 && row == 1; a--) {
        int64_t extent[WPK_AXES_MAX], needed[WPK_AXES_MAX] = {0};
        for (int other = 0; other < last->rank; other++) {
            extent[other] = other == a ? last->axes[a].extent : behind->tile[other];
        }
        bool known =
            find_needed(program, behind->root, extent, program->stages[group->root].output, needed);
        row = known ? needed[along_j ? group->j : group->i] : 1;
    }
    return row;
}

/* List the tiles along i or j, beside `other` along the other one: powers of two, a row of tiles
 * times these, and the whole axis. */
static void list_fits(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                      struct wpk_cuda_group *group, int along_j, int64_t other)
{
    const struct wpk_stage *root = &program->stages[group->root];
    const struct wpk_stage *last = &program->stages[all->group[group->behind].root];
    int64_t whole = root->axes[along_j ? group->j : group->i].extent;
    int64_t row = find_row(program, all, group, along_j);
    int64_t extent[WPK_AXES_MAX], block[2] = {other, other};
    int count = 0;
    for (int64_t size = 1; size <= whole && size <= FIT_MOST; size++) {
        int64_t rows = size % row == 0 ? size / row : 0;
        bool wanted =
            size == whole || (size & (size - 1)) == 0 || (rows > 0 && (rows & (rows - 1)) == 0);
        wanted = wanted && (size >= FIT_LEAST || size == whole) && count < WPK_CUDA_FITS_MAX;
        block[along_j] = size;
        if (wanted && wpk_cuda_fit(program, all, group, block, extent)) {
            /* The blocks of transforms that have so much of each axis. */
            int64_t blocks = 1;
            for (int a = 0; a < last->rank; a++) {
                blocks *= (last->axes[a].extent + extent[a] - 1) / extent[a];
            }
            group->fit_blocks[along_j][count] = blocks;
            group->fit[along_j][count++] = size;
        }
    }
    group->fit_count[along_j] = count;
}

/* ---- before them */

/* Axis `whole` of the contraction makes up whole tiles of what the transforms leave, and a block of
 * it is a box of these: other axes are read as they are. */
static bool makes_tiles(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_group *before, int whole)
{
    const struct wpk_stage *sum = &program->stages[group->sum];
    const struct wpk_stage *last = &program->stages[before->root];
    int64_t extent[WPK_AXES_MAX], needed[WPK_AXES_MAX] = {0};
    for (int a = 0; a < sum->axis_count; a++) {
        extent[a] = a == whole ? sum->axes[a].extent : 1;
    }
    const struct wpk_node *load =
        &program->nodes[program->stages[group->operand[group->before_copy].stage].expr];
    bool makes = find_needed(program, group->sum, extent, last->output, needed);
    for (int a = 0; a < last->rank && makes; a++) {
        bool runs = before->tile[a] > 1 || wpk_index_axis(program, load->index[a]) >= 0;
        makes = needed[a] == before->tile[a] && (runs || last->axes[a].extent == 1);
    }
    return makes;
}

/* The group of transforms whose root operand `c` reads, and nothing else does; -1: none. */
static int find_before(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                       const struct wpk_cuda_group *group, int c)
{
    const struct wpk_node *load = &program->nodes[program->stages[group->operand[c].stage].expr];
    int writer = load->kind == WPK_NODE_LOAD && load->outside < 0
                     ? wpk_program_writer(program, load->tensor)
                     : -1;
    int g = writer < 0 ? -1 : all->group_of[writer];
    bool alone = g >= 0 && all->group[g].kind == WPK_CUDA_TRANSFORMS &&
                 all->group[g].root == writer && wpk_cuda_read(program, load->tensor).loads == 1 &&
                 program->tensors[load->tensor].role == WPK_ROLE_INTERMEDIATE;
    return alone ? g : -1;
}

/* The axis of what the first transform reads along which elements are neighbours in memory, as the
 * axis of the transforms' root that runs along it; -1: inside a tile, or none. */
static int find_contiguous(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                           int g, int s)
{
    int found = -1;
    for (struct wpk_loads load = wpk_loads_of(program, &program->stages[s]);
         wpk_loads_next(&load);) {
        int writer = wpk_program_writer(program, load.node->tensor);
        if (program->tensors[load.node->tensor].role == WPK_ROLE_LITERAL) {
            continue;
        }
        if (writer < 0 || all->group_of[writer] != g) {
            return wpk_cuda_contiguous_axis(program, s, load.id);
        }
        int before = find_contiguous(program, all, g, writer);
        bool pure = before >= 0 && before < program->tensors[load.node->tensor].rank;
        found = pure ? wpk_index_axis(program, load.node->index[before]) : -1;
    }
    return found;
}

/* The axis of the contraction that the axis of the transforms' root is read along, or -1. */
static int find_reader_axis(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            int c, int axis)
{
    const struct wpk_stage *copy = &program->stages[group->operand[c].stage];
    int at = axis < 0 ? -1 : wpk_index_axis(program, program->nodes[copy->expr].index[axis]);
    const struct wpk_node *load = &program->nodes[group->operand[c].load];
    return at < 0 ? -1 : wpk_index_axis(program, load->index[at]);
}

/* The axis of the root whose elements the transforms need together, or -1. */
static int find_whole(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                      const struct wpk_cuda_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    int found = -1;
    for (int a = 0; a < root->rank; a++) {
        struct wpk_cuda_group one = *group;
        one.whole = a;
        bool is = a != group->i && a != group->j && root->axes[a].extent > 1 &&
                  (group->behind >= 0 || group->before >= 0) &&
                  (group->before < 0 || makes_tiles(program, group, &all->group[group->before], a));
        if (is && group->behind >= 0) {
            list_fits(program, all, &one, 1, 1);
            is = one.fit_count[1] > 0;
        }
        found = is ? a : found;
    }
    return found;
}

/* True if the operand, or what is transformed in its place, has its axis `whole` outside of all
 * others. */
static bool has_planes(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                       const struct wpk_cuda_group *group, int c)
{
    const struct wpk_node *load = &program->nodes[group->operand[c].load];
    bool planes = wpk_index_axis(program, load->index[0]) == group->whole;
    if (planes && group->before >= 0 && c == group->before_copy) {
        const struct wpk_cuda_group *before = &all->group[group->before];
        const struct wpk_stage *last = &program->stages[before->root];
        for (int a = 1; a < last->rank; a++) { /* axes of a tile follow such axes only */
            planes = planes && (before->tile[a] == 1 || before->tile[a - 1] > 1);
        }
    }
    return planes;
}

void wpk_cuda_find_joins(const struct wpk_program *program, struct wpk_cuda_groups *all)
{
    for (int g = 0; g < all->count; g++) {
        struct wpk_cuda_group *group = &all->group[g];
        if (group->kind != WPK_CUDA_PRODUCTS || group->i < 0 ||
            group->operand_count != WPK_CUDA_OPERANDS_MAX) {
            continue;
        }
        group->before = -1;
        group->behind = find_behind(program, all, program->stages[group->root].output);
        for (int c = 0; c < group->operand_count; c++) {
            int before = find_before(program, all, group, c);
            if (before >= 0) {
                group->before = before;
                group->before_copy = c;
            }
        }
        group->whole = find_whole(program, all, group);
        if (group->whole < 0 && group->behind >= 0 && group->before >= 0) {
            group->before = -1; /* those behind may do alone */
            group->whole = find_whole(program, all, group);
        }
        if (group->whole < 0) {
            continue;
        }
        group->kind = WPK_CUDA_JOINED;
        for (int c = 0; c < group->operand_count; c++) {
            group->operand[c].planes = has_planes(program, all, group, c);
        }
        if (group->before >= 0) {
            int axis = find_contiguous(program, all, group->before, all->group[group->before].root);
            int read = find_reader_axis(program, group, group->before_copy, axis);
            group->before_along =
                read == group->k ? group->k : group->operand[group->before_copy].tiled;
            /* The axis of the transforms' root that is read along `before_along`. */
            const struct wpk_stage *last = &program->stages[all->group[group->before].root];
            int found = last->rank - 1;
            for (int a = 0; a < last->rank; a++) {
                bool is =
                    find_reader_axis(program, group, group->before_copy, a) == group->before_along;
                found = is ? a : found;
            }
            group->before_last = found;
        }
        if (group->behind >= 0) {
            list_fits(program, all, group, 1, 1);
            list_fits(program, all, group, 0, group->fit[1][0]);
        }
    }
}
