/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/moves.h"

#include "common/cuda_machine.h"
#include "ir/derive/extract.h"
#include "target/gpu/space/transforms.h"

#define PADDING_MAX 8 /* elements behind a row */
#define LONG_ROW (4 * WPK_CUDA_SECTOR_ELEMENTS)

/* The load of a stage that says where an operand of the sum is, if that is inside of windows: some
 * index is no axis. NULL: it is not. */
static const struct wpk_node *find_window(const struct wpk_program *program, int copy)
{
    const struct wpk_stage *stage = &program->stages[copy];
    const struct wpk_node *load = &program->nodes[stage->expr];
    bool windows = false;
    if (stage->reduction != WPK_REDUCE_NONE || load->kind != WPK_NODE_LOAD) {
        return NULL;
    }
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        windows = windows || wpk_index_axis(program, load->index[d]) < 0;
    }
    return windows ? load : NULL;
}

bool wpk_cuda_is_windowed(const struct wpk_program *program, int sum, int axis)
{
    bool windowed = false;
    for (struct wpk_loads load = wpk_loads_of(program, &program->stages[sum]);
         wpk_loads_next(&load);) {
        int writer = wpk_program_writer(program, load.node->tensor);
        windowed = windowed || (writer >= 0 && find_window(program, writer) != NULL &&
                                wpk_contraction_uses_axis(program, load.node, axis));
    }
    return windowed;
}

/* The axis of the operand's copy that the contraction reads at `axis`, or -1. */
static int copied_axis(const struct wpk_program *program, const struct wpk_node *read, int rank,
                       int axis)
{
    int found = -1;
    for (int d = 0; d < rank && axis >= 0; d++) {
        found = wpk_index_axis(program, read->index[d]) == axis ? d : found;
    }
    return found;
}

/* Fill the sizes of the box; false: an index is not affine.
 *   read  the contraction's load of the operand */
static bool find_sizes(const struct wpk_program *program, struct wpk_cuda_group *group,
                       const struct wpk_node *load, const struct wpk_node *read)
{
    const struct wpk_stage *copy = &program->stages[group->operand[group->box_copy].stage];
    const struct wpk_stage *sum = &program->stages[group->sum];
    const int axis[WPK_CUDA_BOX_AXES] = {group->i, group->j, group->whole, group->k};
    bool known = true;
    for (int d = 0; d < program->tensors[load->tensor].rank && known; d++) {
        struct wpk_affine affine;
        known = wpk_index_affine(program, load->index[d], &affine);
        group->box_point[d] = 1;
        group->box_low = affine.constant;
        for (int a = sum->rank; a < sum->axis_count && known; a++) {
            int at = copied_axis(program, read, copy->rank, a);
            bool whole = at >= 0 && a != group->k;
            group->box_point[d] += whole ? affine.coefficient[at] * (sum->axes[a].extent - 1) : 0;
        }
        for (int i = 0; i < WPK_CUDA_BOX_AXES && known; i++) {
            int at = copied_axis(program, read, copy->rank, axis[i]);
            group->box_more[d][i] = at >= 0 ? affine.coefficient[at] : 0;
        }
    }
    return known;
}

/* True if the stage copies rows of whole sectors, sector by sector. */
static bool is_sectored(const struct wpk_program *program, int stage)
{
    const struct wpk_node *load = &program->nodes[program->stages[stage].expr];
    int last = program->tensors[load->tensor].rank - 1;
    struct wpk_affine affine;
    return program->tensors[load->tensor].extent[last] % WPK_CUDA_SECTOR_ELEMENTS == 0 &&
           wpk_index_affine(program, load->index[last], &affine) &&
           affine.constant % WPK_CUDA_SECTOR_ELEMENTS == 0;
}

/* The axis of rows: beside i and j, the windows move along it, and the other operand does not. */
static int find_rows(const struct wpk_program *program, const struct wpk_cuda_group *group,
                     const struct wpk_node *load, const struct wpk_node *read)
{
    const struct wpk_stage *root = &program->stages[group->root];
    int found = -1;
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        struct wpk_affine affine;
        bool window = wpk_index_axis(program, load->index[d]) < 0 &&
                      wpk_index_affine(program, load->index[d], &affine);
        for (int a = 0; a < root->rank && window; a++) {
            int at = copied_axis(program, read, program->tensors[read->tensor].rank, a);
            bool moves = at >= 0 && affine.coefficient[at] != 0;
            found = moves && a != group->i && a != group->j && root->axes[a].extent > 1 ? a : found;
        }
    }
    return found;
}

void wpk_cuda_find_box(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                       struct wpk_cuda_group *group)
{
    group->box = -1;
    for (int c = 0; c < group->operand_count; c++) {
        const struct wpk_node *load = find_window(program, group->operand[c].stage);
        int writer =
            load == NULL || load->outside >= 0 ? -1 : wpk_program_writer(program, load->tensor);
        bool boxed = writer >= 0 && all->group_of[writer] == WPK_CUDA_INLINED &&
                     program->nodes[program->stages[writer].expr].kind == WPK_NODE_LOAD &&
                     wpk_cuda_read(program, load->tensor).loads == 1 &&
                     program->stages[writer].rank == program->tensors[load->tensor].rank;
        if (!boxed) {
            continue;
        }
        const struct wpk_node *read = &program->nodes[group->operand[c].load];
        group->box_copy = c;
        group->whole = find_rows(program, group, load, read);
        group->box = find_sizes(program, group, load, read) ? writer : -1;
        group->box_sectored = is_sectored(program, writer);
        group->whole = group->box < 0 ? -1 : group->whole;
    }
    group->kind = group->box < 0 ? WPK_CUDA_PRODUCTS : WPK_CUDA_WINDOWS;
}

static int64_t find_extent(const struct wpk_cuda_group *group, int d,
                           const struct wpk_cuda_tiles *t)
{
    const int64_t tile[] = {t->block[0], t->block[1], t->together, t->step};
    int64_t extent = group->box_point[d];
    for (int i = 0; i < WPK_CUDA_BOX_AXES; i++) {
        extent += group->box_more[d][i] * (tile[i] - 1);
    }
    return extent;
}

static int64_t choose_align(const struct wpk_cuda_group *group, int64_t extent, bool whole)
{
    if (group->box_sectored && extent >= LONG_ROW) {
        return WPK_CUDA_SECTOR_ELEMENTS;
    }
    for (int64_t lanes = 8; lanes <= WPK_CUDA_WARP && whole && group->box_low == 0; lanes *= 2) {
        if (extent <= lanes && (lanes - extent) * 8 <= lanes) {
            return lanes;
        }
    }
    return 1;
}

/* Rows of a box begin at a known element in a block that has rows of results from end to end. */
int64_t wpk_cuda_box_align(const struct wpk_program *program, const struct wpk_cuda_group *group,
                           const struct wpk_cuda_tiles *t, int64_t *row)
{
    int64_t extent = find_extent(group, program->stages[group->box].rank - 1, t);
    bool whole = group->j >= 0 && t->block[1] >= program->stages[group->root].axes[group->j].extent;
    int64_t align = choose_align(group, extent, whole);
    int64_t rest = whole ? group->box_low % align : align - 1;
    *row = (extent + rest + align - 1) / align * align;
    return align;
}

/* Elements from one element of each dimension to the next; returns those of all.
 *   shape   stride [rank] */
static int64_t find_strides(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t, int64_t padding, int64_t *stride)
{
    int rank = program->stages[group->box].rank;
    int64_t elements = 1, row;
    (void)wpk_cuda_box_align(program, group, t, &row);
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = elements;
        elements *= d == rank - 1 ? row + padding : find_extent(group, d, t);
    }
    return elements;
}

int64_t wpk_cuda_box_elements(const struct wpk_program *program, const struct wpk_cuda_group *group,
                              const struct wpk_cuda_tiles *t, int64_t padding)
{
    int64_t stride[WPK_RANK_MAX];
    return find_strides(program, group, t, padding, stride);
}

/* Rounds in which the banks serve the first warp's read: lanes that read one word are served
 * together. */
static int64_t count_rounds(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t, int64_t padding)
{
    int64_t stride[WPK_RANK_MAX], apart[WPK_CUDA_BOX_AXES] = {0}, word[WPK_CUDA_BANKS], rounds = 1;
    const int64_t threads[] = {t->block[0] / t->thread[0], t->block[1] / t->thread[1]};
    int used[WPK_CUDA_BANKS] = {0};
    int rank = program->stages[group->box].rank;
    (void)find_strides(program, group, t, padding, stride);
    for (int i = 0; i < WPK_CUDA_BOX_AXES; i++) {
        for (int d = 0; d < rank; d++) {
            apart[i] += group->box_more[d][i] * stride[d];
        }
    }
    for (int64_t lane = 0; lane < WPK_CUDA_BANKS; lane++) {
        int64_t j = lane % threads[1], i = lane / threads[1] % threads[0];
        int64_t rows = lane / (threads[0] * threads[1]);
        bool known = false;
        word[lane] = i * t->piece[0] * apart[0] + j * t->piece[1] * apart[1] + rows * apart[2];
        for (int64_t other = 0; other < lane && !known; other++) {
            known = word[other] == word[lane];
        }
        used[word[lane] % WPK_CUDA_BANKS] += !known && rows < t->together;
    }
    for (int b = 0; b < WPK_CUDA_BANKS; b++) {
        rounds = used[b] > rounds ? used[b] : rounds;
    }
    return rounds;
}

int64_t wpk_cuda_box_padding(const struct wpk_program *program, const struct wpk_cuda_group *group,
                             const struct wpk_cuda_tiles *t, int64_t *rounds)
{
    int64_t best = 0;
    *rounds = count_rounds(program, group, t, 0);
    for (int64_t padding = 1; padding <= PADDING_MAX && *rounds > 1; padding++) {
        int64_t found = count_rounds(program, group, t, padding);
        if (found < *rounds) {
            *rounds = found;
            best = padding;
        }
    }
    return best;
}
